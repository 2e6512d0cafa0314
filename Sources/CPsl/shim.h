// The public suffix list.
#ifndef RONDO_CPSL_SHIM_H
#define RONDO_CPSL_SHIM_H

#include <libpsl.h>

#endif
