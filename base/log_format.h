/* log_format.h - one event as text, as JSON, and as Postfix would have written it.
 *
 * Within log.c's thread buffers; bytes in, bytes out.
 *
 * OWNERSHIP  A record points at its caller's values.
 * THREAD     Any.
 * ERRORS     None.
 * SEE        sluice(8), "LOG"; RFC 8259 7.
 */
#ifndef BASE_LOG_FORMAT_H
#define BASE_LOG_FORMAT_H

#include "base/log.h"

enum { LOG_PAIRS_MAX = 40 };

struct log_pair {
	const char *key, *value;
	bool number; /* in JSON without quotes */
	bool cut;    /* value is a copy, to be freed */
};

struct log_record {
	enum log_level level;
	const char *event;
	int64_t wall_ms;
	bool syslog; /* the receiver adds time, host and program; each line begins with its level */
	int npair;
	struct log_pair pair[LOG_PAIRS_MAX];
};

const char *log_level_name(enum log_level);
const char *log_value(const struct log_record *, const char *key, const char *without);
/* The value of that key, or without when there is none. */

void log_begin(struct buf *, const struct log_record *);
/* The beginning of each line for syslog: its level as a digit. */

void log_put_time(struct buf *, int64_t wall_ms);
/* "2026-01-02T03:04:05.678Z". */

void log_format_text(struct buf *, const struct log_record *);
void log_format_json(struct buf *, const struct log_record *);
int log_format_postfix(struct buf *, const struct log_record *);
/* Append the lines of a record; the Postfix form says how many they are. */

#endif
