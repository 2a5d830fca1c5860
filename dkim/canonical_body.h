/* canonical_body.h - the canonical form of a body for DKIM, piece by piece.
 *
 *	simple	empty lines at the end go, but one CRLF is there
 *	relaxed	blanks at the ends of lines go, others become one; then the same, but of nothing is
 *		left nothing
 *
 * Pieces may be cut anywhere; what is hashed is the same.
 *
 * OWNERSHIP  Embedded; holds nothing.
 * THREAD     Any. Pure, but for the sink.
 * ERRORS     None. A CR or LF that stands alone is a byte like others.
 * SEE        RFC 6376 3.4.3, 3.4.4.
 */
#ifndef DKIM_CANONICAL_BODY_H
#define DKIM_CANONICAL_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CANONICAL_BODY_PIECE = 4096 };

struct canonical_body {
	bool relaxed;
	void (*sink)(void *owner, const char *bytes, size_t len);
	void *owner;
	uint64_t ends; /* of lines that are not passed on yet: they may be the last */
	bool text;     /* something was passed on */
	bool cr;       /* has come, and is not passed on: it may be half of an end */
	bool blank;    /* likewise; it may be the last of its line */
	size_t len;
	char piece[CANONICAL_BODY_PIECE];
};

void canonical_body_init(struct canonical_body *, bool relaxed,
			 void (*sink)(void *owner, const char *bytes, size_t len), void *owner);
void canonical_body_put(struct canonical_body *, const char *bytes, size_t len);
void canonical_body_end(struct canonical_body *);

#endif
