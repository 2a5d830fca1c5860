/* moment.h - points in time, and how far away they are, for people to read.
 *
 *	2026-11-22 12:05:30 +0100	local, for text
 *	2026-11-22T11:05:30Z		UTC, for what programs read
 *	3 min	2.5 s	4 h	5 days
 *
 * In the relay what is given is by the queue's clock; what is shown is by the system's (date.h).
 *
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef CMD_TEXT_MOMENT_H
#define CMD_TEXT_MOMENT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

void moment_put(struct buf *, int64_t wall_ms, bool utc);
void moment_put_json(struct buf *, const char *name, int64_t wall_ms);
/* As json_put.h puts members. */

void moment_put_span(struct buf *, int64_t ms);

void moment_put_due(struct buf *, int64_t wall_ms, int64_t now_ms, bool utc);
/* "2026-11-22 12:05:30 +0100, in 3 min"; what is past is now. */

#endif
