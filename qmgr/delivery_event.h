/* delivery_event.h - a verdict on one recipient, as the line of JSON that events.to gets.
 *
 * The fields are a contract: sluice(8), "EVENTS".
 *
 * OWNERSHIP  Looks only.
 * THREAD     qmgr.
 * ERRORS     Where there is no room for a line it is lost: counted, told in the next line that there is room
 *            for, and logged, once a minute at most.
 * SEE        base/event_line.h, base/reason.h.
 */
#ifndef QMGR_DELIVERY_EVENT_H
#define QMGR_DELIVERY_EVENT_H

#include "qmgr/message.h"

struct delivery_event {
	const struct message *message;
	const struct recipient *recipient;
	const struct verdict *verdict;
	const struct verdict
		*cause; /* of an end that is no attempt's: the last attempt's; or NULL */
	const char *site, *transport, *source; /* each may be NULL */
	bool tried;
	int64_t now_ms; /* wall clock */
	int64_t before_ms, queued_ms, setup_ms, transmission_ms;
};

void delivery_event_tell(struct qmgr *, const struct delivery_event *);

void delivery_event_say_lost(struct qmgr *);
/* Log what was lost and not told yet. */

#endif
