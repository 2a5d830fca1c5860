/* ladder.h - which constraint holds back a site's next entry: all of them, in one order.
 *
 * The dispatcher asks it what to do with a site, explain what to say of it.
 *
 *	suspended	by the operator
 *	dead, out	no connection but probes
 *	rate, rate_delay   the next delivery is not due
 *	  (a place is free: nothing but the order of messages keeps it)
 *	connecting	as many connections are being opened as its entries could use
 *	window		as many connections as its window allows
 *	silent		its hosts have never answered, and are being asked
 *	connection_limit, unready_limit   of the transport: all, and those that are not ready
 *	share		of its message
 *	host_connection_limit, host_pause   its hosts have all that they may have; that they were
 *			seen to take
 *	  (another connection may be opened: again only the order keeps it)
 *
 * OWNERSHIP  Reads, and changes nothing.
 * THREAD     qmgr.
 * ERRORS     None.
 */
#ifndef QMGR_DEST_LADDER_H
#define QMGR_DEST_LADDER_H

#include "qmgr/dest/constraint.h"
#include "qmgr/dest/site.h"

struct ladder {
	enum constraint constraint; /* CONSTRAINT_ORDER: none of them */
	struct conn *place;	    /* the place that is free; NULL: a connection is to be opened */
	int64_t until_ms;	    /* steady clock: looked at again; 0: when something ends */
	int64_t limit;		    /* connections that the constraint allows; 0: it is no number */
};

struct ladder ladder_of(const struct site *, const struct peer *);

struct ladder ladder_to_connect(const struct site *, const struct peer *);
/* Of another connection alone, whatever places there are: the lower half. */

#endif
