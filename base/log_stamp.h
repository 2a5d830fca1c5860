/* log_stamp.h - the time at the beginning of a line of a log.
 *
 *	2026-11-21T08:00:00.125Z	2026-11-21T09:00:00.125678+01:00	Nov 21 09:00:00
 *
 * The last has no year, and is in local time, as syslogd and Postfix write it.
 *
 * THREAD     Any.
 * ERRORS     0 bytes: it does not begin with a time.
 * SEE        RFC 3339 5.6; RFC 3164 4.1.2.
 */
#ifndef BASE_LOG_STAMP_H
#define BASE_LOG_STAMP_H

#include <stddef.h>
#include <stdint.h>

size_t log_stamp_read(const char *text, size_t len, int64_t written_ms, int64_t *wall_ms);
/* How many bytes it is. written_ms: as in log_line.h. */

size_t log_stamp_iso(const char *text, size_t len, int64_t *wall_ms);

#endif
