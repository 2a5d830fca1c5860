/* tls_verify.h - does the peer of a handshake have the identity that the policy demands?
 *
 *	certificate -- signed by --> ... --> an authority that we trust		trusted
 *	     +-- one of its names, or its fingerprint, is an item of the policy	matched
 *
 * It is called after the handshake, and looks at what the session holds. So a resumed session must pass the
 * same checks, with the present authorities and time.
 *
 * Names are those of subjectAltName alone. DIFFERS from POSTFIX, which uses the common name of a
 * certificate without one: RFC 9525 2 forbids it. A star stands for the whole first label. A
 * chain has at most nine certificates between the host's and the authority's, as POSTFIX
 * smtp_tls_scert_verifydepth.
 *
 * OWNERSHIP  tls_authorities_new() to tls_authorities_free().
 * THREAD     tls_authorities_new(), _free(): one. tls_verify(): any.
 * ERRORS     As sentences.
 * SEE        RFC 5280 6, RFC 9525 6, RFC 7817; tls_policy.h.
 */
#ifndef BASE_TLS_VERIFY_H
#define BASE_TLS_VERIFY_H

#include "base/buf.h"

#include <openssl/types.h>
#include <stdbool.h>

/* X(what was proven, its word) */
#define TLS_VERIFIED(X)                                                                            \
	X(NONE, "none")                                                                            \
	X(TRUSTED, "trusted")                                                                      \
	X(MATCHED, "matched")                                                                      \
	X(STS, "mta-sts") /* matched, and what it matched is MTA-STS's */                          \
	X(DANE, "dane")

enum tls_verified {
#define X(what, word) TLS_VERIFIED_##what,
	TLS_VERIFIED(X)
#undef X
};

struct tls_authorities; /* they never change */

struct tls_authorities *tls_authorities_new(const char *path, struct buf *error);
/* All certificates in a PEM file, or in the files of a folder. NULL: there are none, or it can't be read. */

int tls_authorities_unread(const struct tls_authorities *);
/* So many others in there can't be read. */

void tls_authorities_write(const struct tls_authorities *, struct buf *pem);
/* Their certificates, one after the other. */

void tls_authorities_free(struct tls_authorities **);

enum tls_verified tls_verify(SSL *, const struct tls_authorities *, const char *items,
			     struct buf *why);
/* items: of a policy of a host. authorities NULL: nobody is trusted. Less than MATCHED: why says why. What is wrong with
 * the chain, SSL_get_verify_result() tells then too. */

const char *tls_verified_word(enum tls_verified);

#endif
