/* log_format.h - one event as text, as JSON, and as Postfix would have written it.
 *
 * Within the log thread's buffer; a record in, bytes out.
 *
 * OWNERSHIP  A record points at its caller's values.
 * THREAD     Any.
 * ERRORS     None.
 * SEE        sluice(8), "LOG"; RFC 8259 7.
 */
#ifndef BASE_LOG_FORMAT_H
#define BASE_LOG_FORMAT_H

#include "base/log_record.h"

const char *log_level_name(enum log_level);
const char *log_value(const struct log_record *, const char *key, const char *without);
/* The value of that key, or without when there is none. */

void log_put_time(struct buf *, int64_t wall_ms);
/* "2026-01-02T03:04:05.678Z". */

void log_json_time(struct buf *, const char *name,
		   int64_t wall_ms); /* a member of an object, with its comma */

void log_format_text(struct buf *, const struct log_record *);
void log_format_json(struct buf *, const struct log_record *);
void log_format_postfix(struct buf *, const struct log_record *);
/* Append the line of a record; the Postfix form may have several. */

#endif
