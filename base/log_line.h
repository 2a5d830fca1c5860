/* log_line.h - one line of the relay's log, read: what log_format.h has written, in each of its forms.
 *
 *	2026-11-21T08:00:00.125Z info sent id=4A2B to=a@b.test          text
 *	{"time":"2026-11-21T08:00:00.125Z","level":"info","event":...}  json
 *	Nov 21 08:00:00 host sluice/smtp[1]: 4A2B: to=<a@b.test>, ...   postfix
 *	Nov 21 08:00:00 host sluice[1]: info sent id=4A2B to=a@b.test   any of them, by way of syslog
 *
 * Which it is, each line says itself. An event that the form postfix has on several lines is read as
 * several of that name, each with its part of the keys.
 *
 * OWNERSHIP  A log_line points into the text that was read.
 * THREAD     Any.
 * ERRORS     False: the line is none of ours, or cut. Names have printable ASCII only, and no quotes.
 * SEE        sluice(8), "LOG"; log_forms.h; RFC 3164 4.1; RFC 5424 6.2.3.
 */
#ifndef BASE_LOG_LINE_H
#define BASE_LOG_LINE_H

#include "base/log_format.h"

#include <stdbool.h>
#include <stdint.h>

enum log_quoting { LOG_PLAIN, LOG_QUOTED_TEXT, LOG_QUOTED_JSON };

struct log_field {
	const char *key, *text; /* text: between its quotes */
	size_t key_len, len;
	enum log_quoting quoting;
};

struct log_line {
	int64_t wall_ms;
	const char *event;
	size_t event_len;
	int n;
	struct log_field field[LOG_PAIRS_MAX];
};

bool log_line_read(struct log_line *, const char *text, size_t len, int64_t written_ms);
/* written_ms: when the file was last written to. A time without a year is the last such time before
 * that, or less than a day after it. */

bool log_line_is(const struct log_line *, const char *event);

const struct log_field *log_line_find(const struct log_line *, const char *key);
/* NULL: it has none. Of two with that key, the first. */

void log_field_put(const struct log_field *, struct buf *to);
/* Append the value as it was before it was quoted; \xHH of the form text included. */

/* Within log_line*.c. */

bool log_line_postfix(struct log_line *, const char *program, size_t program_len, const char *text,
		      const char *end);
/* The text behind "sluice/PROGRAM[PID]: ". */

static inline void log_line_add(struct log_line *l, const char *key, size_t key_len,
				const char *text, size_t len, enum log_quoting quoting)
{
	if (l->n < LOG_PAIRS_MAX)
		l->field[l->n++] = (struct log_field){key, text, key_len, len, quoting};
}

#endif
