/* signature.h - one DKIM-Signature field: which fields are signed, and by what key.
 *
 *	h=	of each name in the list as many as there are, counted from the last, and one more, so that
 *		nobody can add one; b= over these and over the field itself
 *
 * OWNERSHIP  The field is the caller's.
 * THREAD     Any; signing takes a millisecond of RSA: the pool's.
 * ERRORS     signature_make() returns NULL: OpenSSL could not sign.
 * SEE        RFC 6376 3.4.1, 3.4.2, 3.5, 3.7, 5.4; RFC 8301 3.1; RFC 8463 3.
 */
#ifndef DKIM_SIGNATURE_H
#define DKIM_SIGNATURE_H

#include "base/conf.h"
#include "stages/draft.h"

enum { SIGNATURE_HASH = 32 }; /* bytes of SHA-256 */

const struct evp_md_st *signature_sha256(void);
/* An EVP_MD: to look it up by its name for each message takes longer than to hash a short one. */

bool signature_body_relaxed(const struct conf_dkim *);
bool signature_rsa(const struct conf_dkim *); /* else Ed25519 */

void signature_field_relaxed(const char *field, size_t len, struct buf *to);
/* Appends a header field in its relaxed form, with CRLF. */

char *signature_make(const struct conf_dkim *, const struct draft_field *, int nfield,
		     const unsigned char body_hash[SIGNATURE_HASH], int64_t now_s, int64_t until_s);
/* The whole field, CRLF behind it. until_s: how long it is valid, by the date; 0: for ever. */

#endif
