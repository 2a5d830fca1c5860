/* explain.h - why a message, or a site, waits: the constraint that binds now.
 *
 *	QMGR_EXPLAIN --> the state, after all that is due has been done --> rows --> who asked
 *
 * A message has a row for each site that its recipients go to, and one for those that have no site
 * yet. Of constraints that hold together the one is named that would have to go first.
 *
 *	reporting	its report to the sender is being stored
 *	cancelled	the operator wants it; what is under way must end first
 *	memory		recipients not read yet: no room in memory (pool.h)
 *	lookup		waits for its turn to ask for the next hop (router.h)
 *	dns		has asked, and waits for the answer
 *	sending		all of it is on a connection
 *	connecting	a connection is being opened for it
 *	suspended	the operator wants nothing delivered there
 *	dead		the site has failed too often
 *	out		no host of it is in service; one is tried again when its time comes
 *	rate		destination_rate: the next delivery is not due
 *	rate_delay	destination_rate_delay: one at a time, and a pause between
 *	window		as many connections as its window allows, all of them full
 *	share		its message has its share of connections (dispatch.h)
 *	silent		its hosts have never answered, and are being asked
 *	connection_limit    the transport has all its connections
 *	unready_limit   too many of them are not ready
 *	host_connection_limit   the hosts in service have all theirs
 *	host_pause	the hosts have as many as they were seen to take
 *	order		others come first
 *	idle		of a site: nothing waits
 *
 * OWNERSHIP  The question comes back, with rows that belong to it.
 * THREAD     explain_answer(): qmgr. The answer: who asked.
 * ERRORS     What qmgr does not know has no rows.
 */
#ifndef QMGR_EXPLAIN_H
#define QMGR_EXPLAIN_H

#include "base/loop.h"
#include "base/verdict.h"

#include <stdint.h>

enum explain_constraint {
	EXPLAIN_REPORTING,
	EXPLAIN_CANCELLED,
	EXPLAIN_MEMORY,
	EXPLAIN_LOOKUP,
	EXPLAIN_DNS,
	EXPLAIN_SENDING,
	EXPLAIN_CONNECTING,
	EXPLAIN_SUSPENDED,
	EXPLAIN_DEAD,
	EXPLAIN_OUT,
	EXPLAIN_RATE,
	EXPLAIN_RATE_DELAY,
	EXPLAIN_WINDOW,
	EXPLAIN_SHARE,
	EXPLAIN_SILENT,
	EXPLAIN_CONNECTION_LIMIT,
	EXPLAIN_UNREADY_LIMIT,
	EXPLAIN_HOST_CONNECTION_LIMIT,
	EXPLAIN_HOST_PAUSE,
	EXPLAIN_ORDER,
	EXPLAIN_IDLE,
	EXPLAIN_CONSTRAINTS
};

struct explain_row {
	enum explain_constraint constraint;
	const void *of;		/* the scheduler's own, for it alone to look at */
	char *site, *transport; /* or NULL */
	int64_t recipients;	/* of the message; of a site: entries that wait */
	int64_t sending;	/* more of them, on connections */
	int64_t parked;		/* messages in the queue that wait for the site to live again */
	int64_t until_ms;	/* wall clock: when it is looked at next; 0: when something ends */
	int64_t limit;		/* connections that the constraint allows; 0: it is no number */
	int window, connections, connecting, busy; /* of the site */
	int64_t ahead;				   /* entries that come first at this site */
	uint64_t first;				   /* message whose turn it is; 0: its own */
	int64_t first_slots;			   /* that this one still needs */
	int slipped;				   /* messages that have slipped past this one */
	struct verdict *last; /* the site's last failure, or the recipient's last reply; or NULL */
};

struct explain_question {
	struct note note;
	struct loop *reply_to;
	void *owner;
	uint64_t id; /* of a message; 0: a site */
	char *site;  /* or a host, or a domain with mail for it; NULL: a message */
	int nrow;
	struct explain_row *row;
};

struct explain_question *explain_question_new(uint64_t id, const char *site, struct loop *reply_to,
					      void *owner);
void explain_question_free(struct explain_question **);

const char *explain_constraint_name(enum explain_constraint);

struct qmgr;
void explain_answer(struct qmgr *, struct explain_question *);
/* Fill in the rows and post it back. Reads, and changes nothing. */

#endif
