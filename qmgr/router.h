/* router.h - concurrent routing, shared fairly among messages.
 *
 * A recipient whose next hop is known gets its entry at once, and one whose next hop is being looked
 * up waits with the others. Any other needs a look-up, of which so many are under way at once
 * (router_concurrency_limit): FINCH's workers. Whose recipient gets the next:
 *
 *	next_router_job:	of the next flow the first message, by age, that share.h allows one more
 *
 * So one message may have nearly all of them when nobody else wants any, and never holds up another; nor do the messages of
 * one flow those of another.
 *
 * A look-up that has no answer for a second lags: it goes on, but is not one of those any more, unless so many
 * lag already that the name servers must be what is slow. So domains whose name servers are silent hold up no others.
 *
 * OWNERSHIP  Each recipient in memory that has no entry yet: counted in job->routing, and in message->to_route
 *            or in the waiting of a next hop.
 * THREAD     qmgr.
 * ERRORS     As verdicts.
 * SEE        FINCH 2007; nexthop.h.
 */
#ifndef QMGR_ROUTER_H
#define QMGR_ROUTER_H

#include "qmgr/message.h"
#include "qmgr/nexthop.h"
#include "qmgr/sched/job.h"

const struct route *router_route(struct message *, uint32_t recipient);
/* Good until the next is looked for. */

struct job *router_job(struct message *, const struct route *);
/* The job of its transport. */

void router_end(struct message *, uint32_t recipient, const struct route *);
/* Its route is its end, an error or discard: it has its verdict. */

void router_add(struct job *, uint32_t recipient);
void router_add_by(struct job *, uint32_t recipient, const struct route *);
/* Route it: it has its entry, or waits. By: its route is what router_route() has just said. */

void router_move(struct site *);
/* Entries that wait there, and are to go from another source, by another transport or to another site now, are routed
 * anew. */

bool router_renew(struct peer *);
/* One of its entries is about to be served. True: its next hop was looked up too long ago, and all of it has left, to come back with what is
 * found now; the peer may be gone. */

bool router_may_move(const struct entry *); /* in flight */
/* Another source may be had for its mail. */

void router_init(struct qmgr *);
void router_fini(struct qmgr *); /* nothing is looked up any more */

void router_run(struct qmgr *);
/* Begin the look-ups that are allowed now. */

void router_answered(struct resolve *);
void router_sts_answered(struct sts_ask *);
/* A look-up is answered: those who wait for it get their entries, or their verdicts. What waits at a site goes where its next hop
 * leads now. */

void router_forget(struct nexthop *);
/* Forget who waits for its answer, which nobody will hear. */

void router_drop(struct message *);
/* Forget recipients that wait for a look-up to begin. */

#endif
