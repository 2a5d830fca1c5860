/* content_out.h - the content of a message as it goes on the wire.
 *
 *	after DATA	dots doubled, CRLF.CRLF behind
 *	in a chunk	as many bytes as were put in
 *	binary chunk	those very bytes
 *
 * Whatever is put in, but for a binary chunk what comes out holds no CR or LF but in pairs, and
 * after DATA no line that is a lone dot before the end: each stray CR or LF becomes a blank. Nobody
 * can end the message but we.
 *
 * OWNERSHIP  Embedded; holds nothing.
 * THREAD     Any; no I/O.
 * ERRORS     None.
 * SEE        RFC 5321 4.5.2 (transparency), 2.3.8 (lines); RFC 3030 2, 3.
 */
#ifndef SMTPC_CONTENT_OUT_H
#define SMTPC_CONTENT_OUT_H

#include "base/buf.h"

enum content_out_form { CONTENT_OUT_DATA, CONTENT_OUT_CHUNK, CONTENT_OUT_BINARY };

struct content_out {
	enum content_out_form form;
	enum content_out_at {
		CONTENT_OUT_LINE_START,
		CONTENT_OUT_IN_LINE,
		CONTENT_OUT_AFTER_CR, /* the CR is not written yet: what follows decides */
	} at;
};

void content_out_init(struct content_out *, enum content_out_form);

void content_out_put(struct content_out *, const char *bytes, size_t len, struct buf *to);
/* Append the next piece; pieces may be cut anywhere. */

void content_out_end(struct content_out *, struct buf *to);
/* After DATA the end of the last line, if it has none, and the dot; of a chunk what is missing to
 * its size. */

#endif
