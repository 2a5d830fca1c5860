/* content_in.h - the bytes of a message as they come over the wire, made into what is kept.
 *
 *	stream --> content_in_feed() -- decoded runs --> sink (header_in, then intake)
 *
 * DATA: the end is CRLF "." CRLF and nothing else; the dot in front of a line is taken off. BDAT:
 * all bytes are content. In both, a CR or LF that stands alone, a NUL, a line too long and a
 * message too large are noted as faults, and reading goes on to the real end, where the reply has
 * its place. With `normalise`, a lone CR or LF becomes CRLF instead. Such a line end is one in what
 * is kept only: a dot behind it neither ends the message nor is it taken off.
 *
 * Bytes are copied in runs as long as the lines are right; a split of the input anywhere, a feed of
 * one byte at a time included, changes nothing.
 *
 * OWNERSHIP  Embedded in struct intake; holds no memory.
 * THREAD     The session's. Pure: no clock, no I/O.
 * STATES     START (behind a real CRLF) TEXT CR DOT DOT_CR END; see content_in.c.
 * ERRORS     As bits in faults. After the first of them (in normalise: the first that is not a lone
 *            CR or LF) the sink gets nothing more.
 * SEE        RFC 5321 4.1.1.4, 4.5.2, 2.3.8; CVE-2023-51764.
 */
#ifndef SMTPD_CONTENT_IN_H
#define SMTPD_CONTENT_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum content_fault {
	CONTENT_BARE_CR = 1,
	CONTENT_BARE_LF = 2,
	CONTENT_NUL = 4,
	CONTENT_LONG_LINE = 8,
	CONTENT_TOO_LARGE = 16,
};

enum content_state {
	CONTENT_START,
	CONTENT_TEXT,
	CONTENT_CR,
	CONTENT_DOT,
	CONTENT_DOT_CR,
	CONTENT_END,
};

struct content_in {
	void (*sink)(void *owner, const char *bytes, size_t len);
	void *owner;
	bool dots; /* DATA; false: BDAT */
	bool normalise;
	uint64_t line_limit; /* bytes, CRLF included; 0: none */
	uint64_t size_limit; /* bytes; 0: none */
	enum content_state state;
	unsigned faults; /* enum content_fault */
	uint64_t size;	 /* bytes decoded, whether passed on or not */
	uint64_t line;	 /* bytes of the line so far */
};

size_t content_in_feed(struct content_in *, const char *data, size_t len);
/* Returns how many bytes belong to the message: len, or less when its end is among them. */

void content_in_finish(struct content_in *);
/* BDAT: there is no more. A last line without CRLF stays as it is: the next host gets it so in a
 * chunk, and with a CRLF by DATA, where it could not be said otherwise. */

static inline bool content_in_ended(const struct content_in *c)
{
	return c->state == CONTENT_END;
}

static inline bool content_in_refused(const struct content_in *c)
{
	unsigned tolerated = c->normalise ? CONTENT_BARE_CR | CONTENT_BARE_LF : 0;
	return (c->faults & ~tolerated) != 0;
}

#endif
