/* admission.h - what holds back a site's next entry, or the place that is free for it.
 *
 * The dispatcher asks it what to do with a site, explain, the page and the simulation what to say of it.
 *
 *	site_limits_to_begin()	the delivery itself is not due
 *	  (a place is free: nothing but the order of messages keeps it)
 *	site_limits_of_health()	no connection but probes
 *	site_limits_to_connect()	no further connection
 *	  (another connection may be opened: again only the order keeps it)
 *
 * OWNERSHIP  Reads, and changes nothing.
 * THREAD     qmgr.
 * ERRORS     None.
 */
#ifndef QMGR_DEST_ADMISSION_H
#define QMGR_DEST_ADMISSION_H

#include "qmgr/dest/site_limits.h"

struct admission {
	enum constraint constraint; /* CONSTRAINT_ORDER: none of them */
	struct conn *place;	    /* the place that is free; NULL: a connection is to be opened */
	int64_t until_ms;	    /* steady clock: looked at again; 0: when something ends */
	int64_t limit;		    /* what the constraint allows; 0: it is no number */
};

struct admission admission_of(const struct site *, const struct peer *);

struct admission admission_of_first(const struct site *);
/* Of its first entry. None waits here: why its mail in the queue does; CONSTRAINT_IDLE: the site is alive. */

#endif
