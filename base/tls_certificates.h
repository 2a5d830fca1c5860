/* tls_certificates.h - the certificates of one listener: several by name, several kinds of key together.
 *
 *	client's SNI --> the first certificate that names it, with all others of the same names
 *	no match, or no SNI  --> the first of all, likewise
 *
 * Certificates with the same names and different kinds of keys (RSA, ECDSA, Ed25519) belong together: TLS chooses
 * among them by the abilities of the client. FILE.ocsp beside FILE is an OCSP response (DER) from
 * whoever renews the certificate; it is stapled as long as it is valid, and speaks of this certificate.
 *
 * OWNERSHIP  Everything belongs to the SSL_CTX that is returned: SSL_CTX_free().
 * THREAD     Made by main; used by any. It never changes: when files do, another is made.
 * ERRORS     NULL, and why in error.
 * SEE        RFC 6066 3 (SNI), 8 (OCSP stapling); RFC 6960; tls.h.
 */
#ifndef BASE_TLS_CERTIFICATES_H
#define BASE_TLS_CERTIFICATES_H

#include "base/conf.h"

#include <openssl/types.h>

SSL_CTX *tls_certificates_context(const struct conf_listener *, const struct conf_list *groups,
				  struct buf *error);
/* As tls_server_context(), of all certificates and keys, which are as many. */

bool tls_certificates_ask_client(SSL_CTX *, const char *ca, struct buf *error);
/* tls_ask_client(), whichever certificate is shown to it. */

struct tls_span {
	int64_t begins_ms, ends_ms; /* wall clock */
};

bool tls_certificate_span(const char *file, struct tls_span *);
/* When the first certificate in a file is valid. False: it can't be read. */

char *tls_certificate_ocsp(const char *file);
/* Where the OCSP answer for it would lie. The caller's to free(). */

bool tls_certificate_has_others_ocsp(const char *file);
/* Does an answer lie there that says nothing of it? */

#endif
