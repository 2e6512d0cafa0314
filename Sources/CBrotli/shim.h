// The decoder of Brotli (RFC 7932).
#ifndef RONDO_CBROTLI_SHIM_H
#define RONDO_CBROTLI_SHIM_H

#include <brotli/decode.h>

#endif
