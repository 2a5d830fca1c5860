/* site_pace.h - the pace of a site, or of all sites of a provider: what the hosts have said, and what is made of it.
 *
 *	a delivery comes back --> site_pace_answered() --> taken: the pace grows
 *	                                               --> refused by the host (base/reason.h, agreement.h): it is cut, and what
 *	                                                   was refused goes back to the head without an attempt counted
 *	limits: site_pace_open(), site_pace_due_ms()
 *
 * 421 after the greeting is such a refusal, too; but where another host of the site serves, it is that host's failure, as in the greeting.
 * So is any other refusal where nothing is taken: then the others are asked, of lesser preference, too; and after it until that host has taken mail.
 *
 * After pace_retries refusals, or at less than one in ten seconds, a message that is refused is deferred for its own sake.
 * Where all is refused for longer than site_patience the site is `refused`: site_health.c keeps one message to ask with, and the others
 * wait in the queue, as for a site that is out.
 *
 * A pace is kept over restarts with the window (remembered.h), and is told to other nodes as a fact about the host that refused (pooling.h).
 *
 * Whose it is, site->pacing says: hosts of one provider count together what they get from us, whichever domain it is for. So twenty sites
 * learn one pace, and what one of them is told holds for all.
 *
 * OWNERSHIP  Embedded in struct site, and in struct provider.
 * THREAD     qmgr.
 * ERRORS     None.
 * SEE        learnt_pace.h, the numbers.
 */
#ifndef QMGR_DEST_SITE_PACE_H
#define QMGR_DEST_SITE_PACE_H

#include "base/delivery.h"
#include "qmgr/dest/agreement.h"
#include "qmgr/dest/learnt_pace.h"

#include <assert.h>

struct conn;
struct destdb;
struct entry;
struct host;
struct site;

struct site_pace {
	struct learnt_pace learnt;
	struct agreement agreement;
	int64_t since_ms;    /* wall clock: when it was refused first; 0: it is free */
	struct verdict *why; /* what was said last; or NULL */
	double logged;	     /* a second, when it was logged last */
	int64_t under_way;   /* deliveries, on the connections of all that share it */
	int64_t owed;	     /* of them, on such whose host owes an answer for long */
};

bool site_pace_wanted(const struct site *); /* as the transport has it */
bool site_pace_shared(const struct site *); /* it is that of its provider */

bool site_pace_open(const struct site *); /* another delivery may begin, as far as the pace goes */
int64_t
site_pace_due_ms(const struct site *);	  /* steady clock: not before that; what is past is none */
bool site_pace_asks(const struct site *); /* one delivery at a time */
bool site_pace_narrow(const struct site *);
/* Refused lately: one message on a connection, one connection opened at a time, and it is not to be collected. */

bool site_pace_refuses(const struct site *);
/* All is refused, and it will be asked only after longer than site_patience. */

double site_pace_rate(const struct site *); /* a second; 0: any */

void site_pace_recall(struct site *, double rate, int64_t since_ms, int64_t refused_ms,
		      struct verdict *why);
/* As it was before the site was collected, or the process ended: wall clock. Takes the reference, which may be NULL. */

void site_pace_restore(struct site_pace *, struct destdb *, double rate, int64_t since_ms,
		       int64_t refused_ms, struct verdict *why);
/* The same of a provider. */

void site_pace_forget(struct site *);	     /* of all that share it */
void site_pace_touch(struct site *);	     /* likewise */
bool site_pace_is_news(const struct site *); /* it is far from what was logged last */
void site_pace_log(struct site *);

/* site_answers.c */

bool site_pace_rules(const struct site *, const struct host *);
/* The site's pace is what a refusal of this host cuts: no other host takes its mail. */

bool site_pace_answered(struct conn *, struct entry *, struct delivery *);
/* The delivery came back with verdicts: those that are to be tried again at the pace are taken away. False: the host takes nothing, and
 * is left to itself. */

bool site_pace_told(struct conn *, struct entry *, struct delivery *);
/* The delivery came back untouched, for the host would have none of it (delivery.refusal). False: it is to be deferred with that. */

void site_pace_unanswered(struct conn *);
/* Its host owes an answer for long. Where nothing is taken, and another host serves, that is its failure, and the other is asked. */

void site_pace_heard(struct host *); /* another node was refused: host->pace */
void site_pace_meet(struct site *);  /* likewise before: some of its hosts may be new to it */
void site_pace_age(struct site *);   /* forget what is a day old */

/* Another delivery may begin. A host that owes an answer for long says nothing of the pace by that, and would keep all others from it; the
 * one that asks is waited for. */
static inline bool site_pace_lets_begin(const struct site_pace *p, int64_t now_ms)
{
	bool asks = p->learnt.state == LEARNT_PACE_ASKING;
	assert(p->owed <= p->under_way);
	return learnt_pace_open(&p->learnt, now_ms, p->under_way - (asks ? 0 : p->owed));
}

#endif
