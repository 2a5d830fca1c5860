/* tls_certificates.h - the certificates of one listener: several by name, several kinds of key together.
 *
 *	client's SNI --> the first certificate that names it, with all others of the same names
 *	none fits, or no SNI --> the first of all, likewise
 *
 * Certificates with the same names and another kind of key (RSA, ECDSA, Ed25519) go together: TLS chooses
 * among them by what the client can do. Beside FILE may lie FILE.ocsp, an answer of the authority's OCSP
 * server as DER, made by whoever renews the certificate: it is stapled as long as it is in force.
 *
 * OWNERSHIP  All hangs on the SSL_CTX that comes back: SSL_CTX_free().
 * THREAD     Made by main; used by any. It never changes: when files do, another is made.
 * ERRORS     NULL, and why in error.
 * SEE        RFC 6066 3 (SNI), 8 (OCSP stapling); RFC 6960; tls.h.
 */
#ifndef BASE_TLS_CERTIFICATES_H
#define BASE_TLS_CERTIFICATES_H

#include "base/conf.h"

#include <openssl/types.h>

SSL_CTX *tls_certificates_context(const struct conf_listener *, struct buf *error);
/* What tls_server_context() makes, of all certificates and keys, which are as many. */

bool tls_certificates_ask_client(SSL_CTX *, const char *ca, struct buf *error);
/* tls_ask_client(), whichever certificate is shown to it. */

bool tls_certificate_ends(const char *file, int64_t *wall_ms);
/* When the first certificate in a file expires. False: it can't be read. */

char *tls_certificate_ocsp(const char *file);
/* Where the OCSP answer for it would lie. The caller's to free(). */

#endif
