/* door.h - what is known against a recipient before it is taken: mail that would be returned need not come in.
 *
 *	VERIFY_ASK --> its route is an error --> the error
 *	               its route knows all recipients, and not this one --> 550 5.1.1
 *	               its route has servers that may know it --> VERIFY_UNLISTED: the asker asks them, and comes again
 *	               a host has said that there is no such recipient (suppressed.h) --> 550 5.1.1
 *	               the DNS cache has no mail host for the domain, for good (RESOLVE_ASK, known) --> 556 5.1.10, 550 5.1.2
 *	               its route says verify, or the asker --> verifier.h asks the next hop
 *	               else --> nothing is against it
 *
 * The first four ask nobody outside, and are the answer whether or not verification is wanted. What was
 * learnt from hosts and names is left out where a fresh answer is asked for.
 *
 * OWNERSHIP  Embedded in struct qmgr. A question that waits for dns is kept until then.
 * THREAD     qmgr.
 * STATES     open; closed, when nobody is there any more to be answered.
 * ERRORS     As results.
 * SEE        base/verification.h; base/hint.h, which says when asking is worth it; RFC 7505 4.
 */
#ifndef QMGR_DOOR_H
#define QMGR_DOOR_H

#include "base/list.h"
#include "base/resolve.h"
#include "base/verification.h"

struct qmgr;

struct door {
	struct list asking; /* struct door_question: dns has them */
	bool closed;
};

void door_init(struct door *);
void door_ask(struct qmgr *, struct verify *);
void door_answered(struct qmgr *, struct resolve *); /* of one that is known */
void door_close(struct door *);			     /* what is still asked is answered no more */
void door_fini(struct door *);

#endif
