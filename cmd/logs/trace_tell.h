/* trace_tell.h - the story of a message: its lines in the order of time, in words and as JSON.
 *
 * THREAD     Main.
 * ERRORS     None.
 */
#ifndef CMD_LOGS_TRACE_TELL_H
#define CMD_LOGS_TRACE_TELL_H

#include "cmd/logs/trace_find.h"

void trace_tell(struct buf *, const struct trace_item *, const struct trace_item *session,
		const char *now, bool json);
/* session: or NULL. now: a line of sluice queue list, or with json its object; NULL: it is not in the
 * queue; "?": that could not be asked. */

void trace_tell_loose(struct buf *, const struct trace_lines *, bool json);
/* The events that are of no message: refusals above all. */

#endif
