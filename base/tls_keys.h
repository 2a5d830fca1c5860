/* tls_keys.h - reads certificates and private keys, and leaves no other trace of them in memory.
 *
 * A file is read without stdio, whose buffers are never wiped, and wiped when its keys are loaded. So is
 * whatever OpenSSL frees meanwhile, if tls_keys_prepare() was called before its first use.
 *
 * THREAD     tls_keys_prepare(): main, before any other call of OpenSSL. The rest: any.
 * ERRORS     False, and why in OpenSSL's queue of errors of the thread.
 * SEE        SSL_CTX_use_certificate_chain_file(3), CRYPTO_set_mem_functions(3).
 */
#ifndef BASE_TLS_KEYS_H
#define BASE_TLS_KEYS_H

#include <openssl/types.h>
#include <stdbool.h>

void tls_keys_prepare(void);

bool tls_keys_use_certificate(SSL_CTX *, const char *file);
/* The first certificate in a PEM file, and those behind it as its chain. */

bool tls_keys_use_key(SSL_CTX *, const char *file);
/* The private key in a PEM file, which must fit the certificate. */

EVP_PKEY *tls_keys_private(const char *file);
/* The private key in a PEM file, the caller's. NULL on an error: also where it has a passphrase, which nobody is asked for. */

const char *tls_keys_words(unsigned long code);
/* One of OpenSSL's errors in words: of the system where it is one of the system. NULL: it has none. */

const char *tls_keys_reason(void);
/* The latest of OpenSSL's errors in words. */

EVP_MD_CTX *tls_keys_signing(EVP_PKEY *);
/* A context that signs with this key, RSA by way of SHA-256: to be copied for each signature, which costs less than to make
 * it anew. The caller's; NULL on an error. */

#endif
