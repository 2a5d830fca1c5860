/* conn_places.h - how much a connection carries, how much more it may, and the lists that say so.
 *
 * A place is for one delivery. A connection has as many as it said when it became ready, and more as
 * its host earns them: one with each message that arrives (destdb.h). It lies in its site's list
 * of those with a free place or among the rest, and when it carries nothing in the lists of idle ones
 * of its transport and of its host.
 *
 * THREAD     qmgr.
 * SEE        conn.h, which this is a part of.
 */
#ifndef QMGR_DEST_CONN_PLACES_H
#define QMGR_DEST_CONN_PLACES_H

#include "qmgr/dest/conn.h"

enum { CONN_TURN = 10 };

bool conn_has_place(const struct conn *);
void conn_load(struct conn *, struct entry *); /* it takes a place */
void conn_unload(struct conn *, struct entry *);
void conn_learn(struct conn *,
		const struct delivery *); /* from what came back: depth, limits, speed */

bool conn_yields(const struct conn *);
/* The connection has carried CONN_TURN messages for its site, and another has mail for its host and no connection
 * at all: when it is idle it is that site's. */

int64_t conn_waited_us(const struct conn *);
/* How long the first message that it carries has been without an answer; 0: it carries none. */

bool conn_may_go_ahead(const struct conn *, const struct content *);
/* Content may go ahead of the replies to its envelope where that has gone well, and where there is
 * not too much of it. */

void conn_count_owed(
	const struct conn *,
	int n); /* so many of its deliveries more wait for a host that owes an answer for long */
void conn_tell_home(const struct conn *);
/* Its pace waits for what is under way, as far as answers may come soon: if nothing is, it waits no more. */

uint32_t conn_recipients_most(const struct conn *, const struct entry *);
/* Of the entry, to be offered at once; 0: all. */

void conn_relist(struct conn *);	     /* be in the lists that fit what it is now */
void conn_count(const struct conn *, int n); /* in the metric of its state, unless it is closed */

#endif
