/* header_rewrite.h - rewrites the addresses of one header field.
 *
 * All bytes but those of the addresses stay: names, comments, folding, order. An address in one piece
 * is looked at, in angle brackets or bare; one with blanks or comments inside, as RFC 5322 4.4 still
 * allows, stays as it is.
 *
 * THREAD     The session's. Pure, but for what become() does.
 * SEE        RFC 5322 3.4, 3.6.2, 3.6.3, 3.6.6; POSTFIX ADDRESS_REWRITING_README.
 */
#ifndef SMTPD_HEADER_REWRITE_H
#define SMTPD_HEADER_REWRITE_H

#include "base/buf.h"

#include <stdbool.h>

enum header_class {
	HEADER_OTHER,
	HEADER_SENDER,	  /* From, Sender, Reply-To, and their Resent- */
	HEADER_RECIPIENT, /* To, Cc, Bcc, and their Resent- */
};

enum header_class header_class(const char *name, size_t len); /* of a field's name */

/* The new address, the caller's to free; or NULL: it stays. */
typedef char *header_become(void *owner, enum header_class, const char *address, size_t len);

void header_rewrite(const char *field, size_t len, enum header_class, header_become *, void *owner,
		    struct buf *out);
/* field: from its name to the end of its last line. Appends what becomes of it. */

#endif
