/* verifier.h - asking next hops whether they take a recipient: MAIL, RCPT, RSET, no content.
 *
 *	door --> remembered? --> the answer
 *	                 +--> waits, by domain --> [ slots of the pseudo-message ] --> router, scheduler
 *	                                               ^            |                     |
 *	                                               +-- freed ---+--- verdict <--------+
 *
 * All that are under way are recipients of one pseudo-message, as FINCH has it, which the scheduler
 * treats like any other: routes, windows, connections that are kept. So they use what mail uses, and
 * are held up by what holds up mail. It is small: concurrency_limit recipients in all, half of
 * them for one domain, and the domains that wait take turns. (There is one for each sender that is
 * asked for, of which the settings name one; and one more for addresses beyond ASCII.)
 *
 * One that has had no answer for VERIFIER_LAG_MS lags: it goes on, but is not one of those any more, unless so many lag already. So
 * next hops that do not answer keep nobody from asking others; one domain has no more than its half in any case.
 *
 * The spool knows nothing of it, and it ends when nothing is under way.
 *
 * OWNERSHIP  Embedded in struct qmgr. Askers' notes are kept until they are answered.
 * THREAD     qmgr.
 * ERRORS     As results.
 * SEE        FINCH 2007, last paragraph; base/verification.h; POSTFIX ADDRESS_VERIFICATION_README.
 */
#ifndef QMGR_VERIFIER_H
#define QMGR_VERIFIER_H

#include "base/keyed_hash.h"
#include "base/list.h"
#include "base/timer.h"
#include "base/verification.h"

struct message;
struct qmgr;
struct verification;

enum {
	VERIFIER_WAITING_MAX = 10000,
	VERIFIER_LAG_MS = 2000,
	VERIFIER_LAGGING_SCALE = 20, /* times concurrency_limit */
};

/* The pseudo-message of one sender. */
struct verifying {
	struct list link;
	struct message *message;
	uint32_t nslot, nused;
	struct verification **slot; /* by recipient; NULL: free */
};

struct verifier {
	struct verification *by_key; /* all that is known, or being asked about */
	struct list remembered; /* of them, those with an answer; the least lately used first */
	int64_t nremembered, nwaiting;
	int64_t nunderway;  /* and do not lag, in: */
	struct list brisk;  /* struct verification, the longest first */
	int64_t nlagging;   /* under way as well */
	struct timer again; /* the next may lag, and some wait */
	struct verifier_domain *domains;
	struct list turn; /* domains in which some wait */
	struct list messages;
	bool due; /* a slot is free, or somebody waits */
};

void verifier_init(struct qmgr *);
void verifier_ask(struct qmgr *, struct verify *);
void verifier_keep_to_limit(struct qmgr *); /* that of cache_limit: the configuration is another */

void verifier_run(struct qmgr *);
/* Ask about those whose turn it is, and end what has nothing left. Not while a message is being seen to. */

void verifier_drop(struct qmgr *); /* the end: messages, before the next hops go, */
void verifier_fini(struct qmgr *); /* and what is remembered */

#endif
