/* reply.h - a reply of an SMTP server, parsed as its bytes come.
 *
 *	reply_feed() until REPLY_DONE -> code, dsn, lines -> reply_reset() -> the next one
 *
 * Tolerated: lines that end with LF alone, a code with nothing behind it, 8-bit text. Not
 * tolerated: anything that could be read in two ways (codes that differ, a stray CR, NUL, a leading
 * blank).
 *
 * OWNERSHIP  Embedded; reply_fini() gives the memory back.
 * THREAD     Any; no clock, no I/O.
 * ERRORS     REPLY_BAD is final: reply->error is a clause that says why. What a peer can size is
 *            bounded by the constants below; a line is cut, a reply that goes on is bad.
 * SEE        RFC 5321 4.2; RFC 2034 (enhanced codes).
 */
#ifndef BASE_REPLY_H
#define BASE_REPLY_H

#include "base/buf.h"

#include <stdbool.h>

enum {
	REPLY_BYTES_MAX = 64 << 10, /* of one reply, all its lines */
	REPLY_LINES_MAX = 512,
	REPLY_LINE_MAX = 2048, /* bytes of text that are kept of a line */
	REPLY_TEXT_MAX = 1100, /* bytes of all lines joined: a verdict keeps less */
};

enum reply_result { REPLY_MORE, REPLY_DONE, REPLY_BAD };

struct reply {
	int code;     /* 200 to 599 */
	char dsn[12]; /* "5.1.2", of the code's own class, or "" */
	int nline;
	struct buf lines;  /* what follows the code in each line, a NUL behind each */
	const char *error; /* when bad */
	/* the parser's: */
	enum reply_result result;
	size_t bytes, column, line_start;
	int line_code;
	bool more, cr; /* the line has a '-'; the last byte was a CR */
};

void reply_init(struct reply *);
void reply_fini(struct reply *);

enum reply_result reply_feed(struct reply *, const char *bytes, size_t len, size_t *used);
/* Take bytes up to the end of one reply, no further; used says how many. */

void reply_reset(struct reply *);
/* Ready for the next reply; the memory is kept only while it is small. */

int reply_begun(const struct reply *);
/* Of a bad one: the code that it began with; 0: none. */

const char *reply_text(const struct reply *, char to[REPLY_TEXT_MAX + 1]);
/* All lines joined by blanks, as they came, but for an enhanced code that is said again: not yet sanitised, a verdict does
 * that. */

const char *reply_line(const struct reply *, const char *previous);
/* Walk the lines: the first one for NULL, then what follows; NULL behind the last. */

#endif
