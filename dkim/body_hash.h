/* body_hash.h - the hashes of a body, in all canonical forms that are wanted, in one pass over it.
 *
 * THREAD     Any; a large body is for the pool.
 * ERRORS     An errno: the body can't be read, or OpenSSL not hash.
 * SEE        RFC 6376 3.7; canonical_body.h.
 */
#ifndef DKIM_BODY_HASH_H
#define DKIM_BODY_HASH_H

#include "dkim/signature.h"

struct body_hash {
	unsigned char of[2][SIGNATURE_HASH]; /* simple; relaxed: those that some section wants */
};

int body_hash(const struct draft *, const struct conf_dkim *const by[], int n, struct body_hash *);

const unsigned char *body_hash_for(const struct body_hash *, const struct conf_dkim *);

#endif
