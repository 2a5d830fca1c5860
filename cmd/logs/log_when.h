/* log_when.h - the moments that people name: local time, unless it says otherwise.
 *
 *	10:42  10:42:30		the last such moment
 *	2026-11-22		a day: its beginning, or its end
 *	today  yesterday
 *	2026-11-22 10:42	also with seconds, and with a T between
 *	2026-11-22T10:42:00Z	as the log and --json have it; also +01:00
 *	90s  2h  3d		so long ago
 *
 * THREAD     Main.
 * ERRORS     False: it is none of these.
 */
#ifndef CMD_LOGS_LOG_WHEN_H
#define CMD_LOGS_LOG_WHEN_H

#include <stdbool.h>
#include <stdint.h>

bool log_when(const char *text, int64_t now_ms, bool end, int64_t *wall_ms);
/* end: of a day its end is meant, which is the beginning of the next. */

bool log_when_day(const char *text, int64_t now_ms, int64_t *from_ms, int64_t *to_ms);
/* today, yesterday or a date: from its midnight to the next. */

#endif
