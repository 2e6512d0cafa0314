// The types of the functions that Rondo calls in libraries which it loads when it first needs them
// (Sources/RondoLibraries), so that a build needs neither their headers nor the libraries.
//
// Each type repeats the library's documentation of the function named in the comment above it, and has not
// changed since the first version of the ABI that is requested by name.
#ifndef RONDO_CLIBRARIES_H
#define RONDO_CLIBRARIES_H

#include <stddef.h>
#include <stdint.h>

// --- libbrotlidec.so.1: brotli/decode.h

typedef struct rondo_brotli_state rondo_brotli_state;

// BrotliDecoderCreateInstance: all arguments are NULL, since Rondo passes no allocator.
typedef rondo_brotli_state *_Nullable (*rondo_brotli_create)(
    void *_Nullable allocate, void *_Nullable release, void *_Nullable argument);

// BrotliDecoderDecompressStream: returns 0 error, 1 success, 2 needs more input, 3 needs more output.
typedef int (*rondo_brotli_decode)(
    rondo_brotli_state *_Nonnull state, size_t *_Nonnull available_in, const uint8_t *_Nullable *_Nonnull next_in,
    size_t *_Nonnull available_out, uint8_t *_Nullable *_Nonnull next_out, size_t *_Nullable total_out);

// BrotliDecoderDestroyInstance, BrotliDecoderGetErrorCode and BrotliDecoderErrorString.
typedef void (*rondo_brotli_destroy)(rondo_brotli_state *_Nonnull state);
typedef int (*rondo_brotli_error_code)(const rondo_brotli_state *_Nonnull state);
typedef const char *_Nullable (*rondo_brotli_error_text)(int code);

// --- libzstd.so.1: zstd.h

typedef struct rondo_zstd_context rondo_zstd_context;

// ZSTD_inBuffer and ZSTD_outBuffer.
typedef struct {
    const void *_Nullable source;
    size_t size;
    size_t position;
} rondo_zstd_input;
typedef struct {
    void *_Nullable target;
    size_t size;
    size_t position;
} rondo_zstd_output;

// ZSTD_createDCtx, ZSTD_freeDCtx and ZSTD_DCtx_setParameter; parameter 100 is the limit of the window.
typedef rondo_zstd_context *_Nullable (*rondo_zstd_create)(void);
typedef size_t (*rondo_zstd_free)(rondo_zstd_context *_Nullable context);
typedef size_t (*rondo_zstd_set)(rondo_zstd_context *_Nonnull context, int parameter, int value);
enum { rondo_zstd_window_log_max = 100 };

// ZSTD_decompressStream: returns 0 at the end of a frame, an error for which ZSTD_isError is true, or a hint.
typedef size_t (*rondo_zstd_decode)(
    rondo_zstd_context *_Nonnull context, rondo_zstd_output *_Nonnull output, rondo_zstd_input *_Nonnull input);

// ZSTD_getFrameContentSize, ZSTD_isError and ZSTD_getErrorName.
typedef unsigned long long (*rondo_zstd_content_size)(const void *_Nullable bytes, size_t count);
typedef unsigned (*rondo_zstd_is_error)(size_t result);
typedef const char *_Nonnull (*rondo_zstd_error_name)(size_t result);

// --- libpsl.so.5: libpsl.h

typedef struct rondo_psl_list rondo_psl_list;

// psl_builtin: the list compiled into the library. psl_latest: the newer of that list and the file.
typedef const rondo_psl_list *_Nullable (*rondo_psl_builtin)(void);
typedef rondo_psl_list *_Nullable (*rondo_psl_latest)(const char *_Nullable file);

// psl_is_public_suffix2 for domains in lower case; PSL_TYPE_ICANN, PSL_TYPE_PRIVATE and
// PSL_TYPE_NO_STAR_RULE.
typedef int (*rondo_psl_contains)(const rondo_psl_list *_Nonnull list, const char *_Nonnull domain, int type);
enum { rondo_psl_icann = 1, rondo_psl_private = 2, rondo_psl_no_star_rule = 4 };

#endif
