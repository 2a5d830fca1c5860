/* qmgr.h - the scheduler: which message goes where, when, and on which connection.
 *
 *	spool -- SPOOL_ARRIVAL --> message -- in batches, routed --> next hop -- RESOLVE_ASK --> dns
 *	                              |                     |
 *	                              v                     v
 *	transport: selection --- job -> peer -> entry -->  site  -- CONNECTION_OPEN --> smtpc
 *	                                        |           ^  |
 *	                                        |           |  +-- DELIVERY_GIVE -----> smtpc
 *	                                        v           |
 *	spool <-- SPOOL_DELIVERED, RELEASE --- outcome <----+----- DELIVERY_BACK ------ smtpc
 *
 *	message.c   one message being worked on, from arrival to the end of its round of attempts
 *	round.c     the end of that round: reports, and back to the spool
 *	reader.c    its recipients, read in batches
 *	pool.c      how many of them may be in memory, and whose: slots, lent along the list of jobs
 *	router.c    whose next hop is looked up next
 *	route.c     recipient -> transport and next hops, most specific route first (pure)
 *	nexthop.c   next hop -> hosts, by way of dns; recipients wait here for the answer
 *	nexthop_name.c what next hops and sites are called, which decides who shares one (pure)
 *	job.c       a message's work on one transport: peers, and entries of so many recipients
 *	selection.c which entry is next: the order of jobs, blockers
 *	shelf.c     who may slip past: candidates by size and age
 *	preempt.c   what slipping past costs: slots, parents and children (pure)
 *	dispatch.c  a transport's slots: places on ready connections, and new connections
 *	heap.c      what comes first, among many whose order changes
 *	pace.c      deliveries in a time (pure)
 *	transport.c a named set of limits, with its jobs and the number of its connections
 *	site.c      a destination (Postfix's queue): the peers that wait, connections, window
 *	site_hosts.c  its hosts: which is next, and what to do while none can
 *	site_health.c is it alive; what becomes of its mail while it is not, and when it is again
 *	site_refusal.c what it means when all its hosts refuse to talk
 *	site_places.c where an entry can go now: places, and the pace of the site
 *	ladder.c    what keeps a site's next entry, for dispatcher and explain alike
 *	site_feedback.c what connections and deliveries tell its window
 *	window.c    how many connections a site may have: Postfix's feedback (pure)
 *	remembered.c  how wide its window was, for when it is known again
 *	host.c      one host: up, out, probed; how many connections it takes
 *	speed.c     how far and how fast it is, and what that makes of a connection (pure)
 *	destdb.c    the hosts
 *	destdb_choose.c which of them gets a new connection (pure)
 *	destdb_text.c  what of that outlives the process
 *	congestion.c  warnings about an active queue that fills up
 *	suspend.c   what the operator wants nothing delivered to
 *	dest_command.c  sites and hosts as the operator sees them
 *	conn.c      the connections that smtpc holds for us, and what each carries
 *	conn_state.c  what each is doing, and every number that follows from it
 *	conn_places.c  how much each may carry, and the lists that say so
 *	indoubt.c   what was sent wholly and never answered: alone, and not for ever
 *	conn_verdicts.c  what came back on one, recorded and counted
 *	outcome.c   a verdict on a recipient: log, counters, what the spool must remember
 *	retry.c     when to try again (pure)
 *	report_rate.c  how many reports in a time (pure)
 *	bounce.c    RFC 3464 reports (pure)
 *	report_text.c  the small forms in them: dates, folded lines, xtext
 *	explain.c   why a message or a site waits; reads only
 *	snapshot.c  the busiest sites at a glance; reads only
 *	explain_question.c  what is asked for that, and the answer's rows
 *
 * Binding is late: an entry is given only to a connection that is ready and has a free place. A
 * connection that fails before that leaves the entries where they were.
 *
 * OWNERSHIP  qmgr owns all of the above; notes are given away by posting.
 * THREAD     qmgr_new() to qmgr_free(): main. All else runs in the loop's thread.
 * ERRORS     None; all that goes wrong is a verdict.
 * SEE        POSTFIX SCHEDULER_README; FINCH 2007.
 */
#ifndef QMGR_QMGR_H
#define QMGR_QMGR_H

#include "base/conf.h"
#include "base/loop.h"

#include <stdint.h>

struct qmgr;
struct peer;

enum qmgr_note {
	QMGR_EXPLAIN = 420, /* struct explain_question; the same object comes back */
	QMGR_SNAPSHOT,	    /* struct snapshot; likewise */
};

/* Where its notes go; main wires these to the real threads, a test to itself. */
struct qmgr_edges {
	void (*to_spool)(void *context, struct note *);
	void (*to_dns)(void *context, struct note *);
	void (*to_worker)(void *context, int worker, struct note *);
	void *context;
	int workers;				       /* at least 1 */
	void (*to_main)(void *context, struct note *); /* DEST_SAVE; NULL: nobody saves */
};

struct qmgr *qmgr_new(struct conf *); /* takes a reference */
void qmgr_wire(struct qmgr *, const struct qmgr_edges *);
/* Before qmgr_start(); gives the spool its first credit. */

void qmgr_start(struct qmgr *);

void qmgr_rest(struct qmgr *);
/* Posts: give nothing more to connections. What they carry comes to its end, as METRIC_under_way
 * tells. */

void qmgr_stop(struct qmgr *);
void qmgr_free(struct qmgr **);
void qmgr_recall(struct qmgr *, const char *text);
/* What was learnt about hosts before. Before qmgr_start(). */

void qmgr_learnt(struct qmgr *, struct buf *to);
/* The same, to be kept. After qmgr_stop(). */

struct loop *qmgr_loop(struct qmgr *);
void qmgr_reload(struct qmgr *, struct conf *); /* posts; takes a reference */

/* For a simulation, before anything arrives: */
void qmgr_seed(struct qmgr *, uint64_t seed); /* not 0: chance as in another run */
void qmgr_bind_early(struct qmgr *, void (*bind)(void *context, struct peer *));
/* Where a connection would be opened for this peer, bind() takes its first entry instead, with the
 * context of the edges. It counts itself in transport->connections and site->busy. */

#endif
