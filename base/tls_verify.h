/* tls_verify.h - is the peer of a handshake who it should be?
 *
 *	certificate -- signed by --> ... --> an authority that we trust		trusted
 *	     +-- one of its names, or its fingerprint, is an item of the policy	matched
 *
 * Asked when the handshake is done, of what the session holds: so the same is asked of a session that is
 * resumed, with the authorities and the time of now.
 *
 * Names are those of subjectAltName alone. DIFFERS from POSTFIX, which looks at the common name of a
 * certificate that has none: RFC 9525 2 has done with it. A star stands for one whole label, the first. A
 * chain has nine certificates between the host's and the authority's at most, as POSTFIX
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
	X(DANE, "dane")

enum tls_verified {
#define X(what, word) TLS_VERIFIED_##what,
	TLS_VERIFIED(X)
#undef X
};

struct tls_authorities; /* they never change */

struct tls_authorities *tls_authorities_new(const char *path, struct buf *error);
/* All certificates in a PEM file, or in the files of a folder. NULL: there are none, or it can't be read. */

void tls_authorities_free(struct tls_authorities **);
int tls_authorities_count(const struct tls_authorities *);

enum tls_verified tls_verify(SSL *, const struct tls_authorities *, const char *items,
			     struct buf *why);
/* items: of a policy of a host. authorities NULL: nobody is trusted. Less than MATCHED: why says why. */

const char *tls_verified_word(enum tls_verified);

#endif
