/* event_line.h - the result of an attempt on a recipient, on its way to the receiver of events.
 *
 *	qmgr -- EVENT_LINE, within event_line_room --> events --> file, socket or HTTP
 *
 * Mail never waits for the receiver: the memory of events on their way is bounded, and an event
 * beyond that is lost, and counted.
 *
 * OWNERSHIP  Given away by posting.
 * THREAD     event_line_room_take(), _give(): any; one atomic number. event_line_room_limit(): main.
 * ERRORS     None.
 * SEE        sluice(8), "EVENTS"; events/events.h.
 */
#ifndef BASE_EVENT_LINE_H
#define BASE_EVENT_LINE_H

#include "base/mailbox.h"

#include <stddef.h>
#include <stdint.h>

enum { EVENT_LINE = NOTES_FROM(NOTES_OF_EVENT_LINE) };

struct event_line {
	struct note note;
	size_t len;
	char line[]; /* JSON, with its LF */
};

struct event_line *event_line_new(const char *line, size_t len);

bool event_line_room_take(size_t len);
/* False: there is none. */

void event_line_room_give(size_t len);
void event_line_room_limit(int64_t bytes);

#endif
