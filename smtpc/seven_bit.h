/* seven_bit.h - converts 8-bit content for a host without 8BITMIME, part by part.
 *
 *	text with Content-Transfer-Encoding 8bit or binary	quoted-printable
 *	other such parts					base64
 *	multipart, message/rfc822				7bit, and what is in them likewise
 *	all else, and all of a multipart/signed			as it is
 *
 * Bytes that were never declared to be 8-bit stay what they are: nobody knows what they mean. Pieces may be
 * cut anywhere; a header longer than SEVEN_BIT_HEADER_MAX passes as it is, with all that follows.
 *
 * OWNERSHIP  The caller's until seven_bit_free().
 * THREAD     Any; no I/O but seven_bit_may(), which reads the content.
 * ERRORS     None.
 * SEE        RFC 6152 3; RFC 2045 6; RFC 2046 5.1, 5.2; RFC 6376 5.3.
 */
#ifndef SMTPC_SEVEN_BIT_H
#define SMTPC_SEVEN_BIT_H

#include "base/buf.h"
#include "base/content.h"

enum { SEVEN_BIT_HEADER_MAX = 64 << 10 };

struct seven_bit;

bool seven_bit_may(const struct content *);
/* The content is MIME, and no signature would break by it: there is none in its header. */

struct seven_bit *seven_bit_new(void);
void seven_bit_free(struct seven_bit **); /* NULL is allowed */

void seven_bit_put(struct seven_bit *, const char *bytes, size_t len, struct buf *to);
void seven_bit_end(struct seven_bit *, struct buf *to);

#endif
