/* sink_data.h - the content that follows DATA: dots un-stuffed, until CRLF.CRLF.
 *
 * Bytes in, bytes out, in whatever pieces they come. A CR or LF that stands alone is content.
 *
 * OWNERSHIP  Embedded.
 * THREAD     Any.
 * ERRORS     None.
 * SEE        RFC 5321 4.5.2.
 */
#ifndef CMD_SINK_SINK_DATA_H
#define CMD_SINK_SINK_DATA_H

#include "base/buf.h"

#include <stdbool.h>

struct sink_data {
	enum {
		SINK_DATA_LINE,	  /* a line begins */
		SINK_DATA_DOT,	  /* it began with a dot */
		SINK_DATA_DOT_CR, /* and then a CR */
		SINK_DATA_INSIDE,
		SINK_DATA_CR, /* inside, and then a CR */
		SINK_DATA_END,
	} state; /* zero at the beginning */
};

size_t sink_data_take(struct sink_data *, const char *bytes, size_t len, struct buf *to);
/* Returns how many bytes were used: all, unless the end was among them (state SINK_DATA_END). */

#endif
