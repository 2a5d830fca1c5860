/* site_limits.h - the limits of a site: a table of rows, and which of them holds back its next entry.
 *
 *	before a place on a connection is looked for		before another connection is opened
 *	suspended	by the operator				connecting	enough are being opened
 *	pace		its hosts let no more through
 *	rate, rate_delay   the next is not due			rate_delay	one at a time
 *	provider_rate	   nor of its provider
 *	source_rate	   nor from its source
 *	flow_rate	   nor of the entry's flow
 *								window		its connections
 *	behind it: its health					silent		hosts that never answered
 *	dead, out	no connection but probes		provider_connection_limit
 *								connection_limit, unready_limit
 *								share		of its message
 *								out, host_pause, host_connection_limit
 *
 * Each row finds out whether it holds, what it allows and when it passes; what that means, to the dispatcher and to people, its
 * row in constraint.h says. The first that holds counts: the others are behind it. Another limit is a row in both tables.
 *
 * OWNERSHIP  Reads, and changes nothing.
 * THREAD     qmgr.
 * ERRORS     None.
 * SEE        admission.h, which puts the places between them.
 */
#ifndef QMGR_DEST_SITE_LIMITS_H
#define QMGR_DEST_SITE_LIMITS_H

#include "qmgr/dest/constraint.h"
#include "qmgr/dest/site.h"

enum { SITE_LIMITS_UNPROVEN = 2 };

struct limit {
	enum constraint constraint; /* CONSTRAINT_ORDER: nothing holds */
	int64_t until_ms;	    /* steady clock: looked at again; 0: when something ends */
	int64_t allows;		    /* what the row counts; 0: it is no number */
};

struct limit site_limits_to_begin(const struct site *, const struct peer *);
/* Of a delivery, whatever place there may be for it. */

struct limit site_limits_of_health(const struct site *, const struct peer *);
/* Of a connection for mail: there are only probes. */

struct limit site_limits_to_connect(const struct site *, const struct peer *);
/* Of another connection, of a site that is well. */

bool site_limits_has(enum constraint);
/* The constraint is a row of these tables. */

bool site_limits_probes_full(const struct transport *);
/* Probes may hold a part of its connections only: many hosts may be out at once. */

bool site_limits_silent(const struct site *);
/* Its hosts have never answered, and have had time to: it has as many connections as it may until then. Those that others are tried
 * beside count no more. */

int site_limits_silent_count(const struct site *);
/* Connections of it that mail waits for, and that were not heard of for some time. */

bool site_limits_stalled_most(const struct transport *);
/* Half of its connections and more are stalled. */

bool site_limits_unready_full(const struct transport *);
/* As many of its connections are silent as may be. */

bool site_limits_share_allows(const struct peer *);
/* Its message may have another. */

#endif
