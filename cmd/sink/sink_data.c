/* SPDX-License-Identifier: ISC */
#include "cmd/sink/sink_data.h"

#include <string.h>

/* Content that was kept back until it was known not to be the end; then the byte is looked at
 * anew. */
static bool put_back(struct sink_data *d, const char *kept, struct buf *to)
{
	buf_puts(to, kept);
	d->state = *kept == '\r' ? SINK_DATA_CR : SINK_DATA_INSIDE;
	return false;
}

/* One byte that is not plainly inside a line. True: it was used up. */
static bool take_byte(struct sink_data *d, char byte, struct buf *to)
{
	switch (d->state) {
	case SINK_DATA_LINE:
		if (byte != '.')
			return put_back(d, "", to);
		d->state = SINK_DATA_DOT;
		return true;
	case SINK_DATA_DOT: /* this dot is no content, whatever follows */
		if (byte != '\r')
			return put_back(d, "", to);
		d->state = SINK_DATA_DOT_CR;
		return true;
	case SINK_DATA_DOT_CR:
		if (byte != '\n')
			return put_back(d, "\r", to);
		d->state = SINK_DATA_END;
		return true;
	case SINK_DATA_CR:
		if (byte != '\n' && byte != '\r')
			return put_back(d, "", to);
		buf_append(to, &byte, 1);
		d->state = byte == '\n' ? SINK_DATA_LINE : SINK_DATA_CR;
		return true;
	default:
		return true;
	}
}

size_t sink_data_take(struct sink_data *d, const char *bytes, size_t len, struct buf *to)
{
	size_t used = 0;
	while (used < len && d->state != SINK_DATA_END) {
		if (d->state != SINK_DATA_INSIDE) {
			used += take_byte(d, bytes[used], to);
			continue;
		}
		const char *cr = memchr(bytes + used, '\r', len - used);
		size_t run = cr ? (size_t)(cr - bytes) - used + 1 : len - used;
		buf_append(to, bytes + used, run);
		used += run;
		if (cr)
			d->state = SINK_DATA_CR;
	}
	return used;
}
