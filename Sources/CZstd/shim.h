// Zstandard (RFC 8878).
#ifndef RONDO_CZSTD_SHIM_H
#define RONDO_CZSTD_SHIM_H

#include <zstd.h>

#endif
