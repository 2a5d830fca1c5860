/* flight.h - messages that were sent and not acknowledged yet, in the order in which they were sent.
 *
 * What an acknowledgement is for counts when all before it have come, so that what the stream has of a file
 * has no holes.
 *
 * OWNERSHIP  Embedded.
 * THREAD     replica.
 * ERRORS     An acknowledgement of what is not there, from before flight_drop(), says nothing.
 */
#ifndef REPLICA_FLIGHT_H
#define REPLICA_FLIGHT_H

#include "base/list.h"
#include "replica/copy.h"
#include "replica/format.h"

struct flown {
	struct list link;
	enum replica_type type;
	uint64_t number;
	struct copy_key key; /* LOG, LARGE, LARGE_END */
	uint64_t to;	     /* of that file, all before it is there then */
	uint64_t bytes;
	uint64_t sequence; /* in the stream, once it is acknowledged; else 0 */
	int64_t sent_ms;
};

struct flight {
	struct list sent;
	uint64_t number; /* of the last one ever */
	uint64_t bytes;
	int n;
};

void flight_init(struct flight *);
void flight_drop(struct flight *); /* they are to be sent again */

void flight_add(struct flight *, const struct flown *);
void flight_acknowledged(struct flight *, uint64_t number, uint64_t sequence);
bool flight_take(struct flight *, struct flown *);
/* The first, if it is acknowledged. */

bool flight_is_spare(const struct flight *, uint64_t number);
void flight_forget(struct flight *, uint64_t number); /* it will not come */

int64_t
flight_since_ms(const struct flight *); /* when the first was sent; INT64_MAX: there is none */

#endif
