/* explain.h - why a message, or a site, waits: the constraint that binds now.
 *
 *	QMGR_EXPLAIN --> the state, after all that is due has been done --> rows --> who asked
 *
 * A message has a row for each site that its recipients go to, and one for those that have no site
 * yet. Of constraints that hold together the one is named that would have to go first;
 * constraint.h has them all.
 *
 * OWNERSHIP  The question comes back, with rows that belong to it.
 * THREAD     explain_answer(): qmgr. The answer: who asked.
 * ERRORS     What qmgr does not know has no rows.
 */
#ifndef QMGR_EXPLAIN_H
#define QMGR_EXPLAIN_H

#include "base/loop.h"
#include "base/verdict.h"
#include "qmgr/dest/constraint.h"

#include <stdint.h>

struct explain_row {
	enum constraint constraint;
	const void *of;		/* the scheduler's own, for it alone to look at */
	char *site, *transport; /* or NULL */
	char *key;		/* of the site: site_name.h; or NULL */
	char *provider;		/* of the site; or NULL */
	char *source;		/* likewise: where its connections come from */
	char *login_hop; /* the next hop, as in credentials, whose host refuses our login; or NULL */
	bool login_of_sender; /* that login is for some senders only */
	char *resume; /* the operator has suspended all its hosts, one by this name; or NULL */
	int64_t recipients; /* of the message; of a site: entries that wait */
	int64_t sending;    /* more of them, on connections */
	int64_t parked;	    /* messages in the queue that wait for the site to live again */
	int64_t until_ms;   /* wall clock: when it is looked at next; 0: when something ends */
	int64_t limit;	    /* what the constraint allows; 0: it is no number */
	double pace;	  /* of the site: deliveries a second that its hosts let through; 0: any */
	int64_t paced_ms; /* wall clock: since when; 0 */
	int window, connections, connecting, busy; /* of the site */
	int64_t ahead;				   /* entries that come first at this site */
	uint64_t first;				   /* message whose turn it is; 0: its own */
	int64_t first_slots;			   /* deliveries that it has to begin */
	int slipped;				   /* messages that have slipped past this one */
	struct verdict *last; /* the site's last failure, or the recipient's last reply; or NULL */
};

struct explain_question {
	struct note note;
	struct loop *reply_to;
	void *owner;
	uint64_t id; /* of a message; 0: a site */
	char *site;  /* or a host, or a domain with mail for it; NULL: a message, or a flow */
	char *flow; /* only of its mail: that message, or what is being worked on for that site, or for all; or NULL */
	uint16_t number; /* of a site that a message in the queue waits for; or 0 */
	char *domain;	 /* of such a message; or NULL */
	int nrow;
	struct explain_row *row;
};

struct explain_question *explain_question_new(uint64_t id, const char *site, struct loop *reply_to,
					      void *owner);
struct explain_question *explain_question_of_queued(uint16_t number, const char *domain,
						    struct loop *reply_to, void *owner);
/* The constraint of the site that it waits for (spool_row.site), and is its domain suspended? At most a row of
 * each, the domain's last; CONSTRAINT_IDLE or CONSTRAINT_SENDING: that site answers. */

void explain_question_free(struct explain_question **);

struct qmgr;
void explain_answer(struct qmgr *, struct explain_question *);
/* Fill in the rows and post it back. Reads, and changes nothing. */

#endif
