// OpenSSL 3: the headers that Rondo uses, and the macros that Swift cannot import by itself.
#ifndef RONDO_COPENSSL_SHIM_H
#define RONDO_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/auxv.h>

_Static_assert(OPENSSL_VERSION_MAJOR == 3, "Rondo is written for OpenSSL 3");

// Whether the program has more rights than its user, which OpenSSL checks before it uses an environment
// variable. In C because Swift does not import glibc's header for it.
static inline int rondo_is_privileged(void) {
    return getauxval(AT_SECURE) != 0;
}

// The functions below are macros over SSL_ctrl and its kin, whose casts Swift does not import.

static inline int rondo_SSL_set_tlsext_host_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}

static inline int rondo_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

static inline int rondo_SSL_CTX_set_max_proto_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_max_proto_version(context, version);
}

static inline long rondo_SSL_CTX_set_mode(SSL_CTX *context, long mode) {
    return SSL_CTX_set_mode(context, mode);
}

static inline void rondo_BIO_set_mem_eof_return(BIO *bio, int value) {
    BIO_set_mem_eof_return(bio, value);
}

// A BIO that reads and writes the plaintext of a connection. It does not own the connection.
static inline BIO *rondo_BIO_new_over_SSL(SSL *ssl) {
    BIO *bio = BIO_new(BIO_f_ssl());
    if (bio != NULL) {
        BIO_set_ssl(bio, ssl, BIO_NOCLOSE);
    }
    return bio;
}

static inline int rondo_SSL_set_retry_verify(SSL *ssl) {
    return SSL_set_retry_verify(ssl);
}

static inline long rondo_SSL_CTX_set_session_cache_mode(SSL_CTX *context, long mode) {
    return SSL_CTX_set_session_cache_mode(context, mode);
}

static inline long rondo_SSL_CTX_sess_set_cache_size(SSL_CTX *context, long size) {
    return SSL_CTX_sess_set_cache_size(context, size);
}

static inline void rondo_SSL_CTX_set_servername_callback(
    SSL_CTX *context, int (*callback)(SSL *, int *, void *)) {
    SSL_CTX_set_tlsext_servername_callback(context, callback);
}

static inline int rondo_SSL_CTX_set_dh_auto(SSL_CTX *context, int on) {
    return (int)SSL_CTX_set_dh_auto(context, on);
}

// SSL_OP_BIT(14) and its kin: a macro with an argument.
static const uint64_t rondo_SSL_OP_NO_TICKET = SSL_OP_NO_TICKET;
static const uint64_t rondo_SSL_OP_CIPHER_SERVER_PREFERENCE = SSL_OP_CIPHER_SERVER_PREFERENCE;
static const uint64_t rondo_SSL_OP_NO_RENEGOTIATION = SSL_OP_NO_RENEGOTIATION;

// A chain of casts. The flags print the name of a certificate's subject in one line, with control characters
// escaped.
static const unsigned long rondo_XN_FLAG_RFC2253 = XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB;

#endif
