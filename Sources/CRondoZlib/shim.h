// zlib: inflate.
#ifndef RONDO_CZLIB_SHIM_H
#define RONDO_CZLIB_SHIM_H

#include <zlib.h>

#endif
