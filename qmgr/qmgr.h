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
 * Three rooms, and the thread around them. Each includes its own headers and those of the rooms before it:
 *
 *	route/		address -> transport, next hops and hosts		route.h
 *	sched/		which entry is next, on which queue: jobs, slots	scheduler.h
 *	dest/		sites, hosts, connections; the binder			destdb.h
 *
 * The thread's own files meet all of them:
 *
 *	qmgr.c		notes from outside, and what each begins
 *	qmgr_thread.c	one wake-up: what has changed, what is collected and saved
 *	message.c	one message being worked on, from arrival to the end of its round of attempts
 *	round.c		the end of that round: reports, and back to the spool
 *	reader.c	its recipients, read in batches
 *	reading_order.c	of a large message: by transaction (pure)
 *	router.c	whose next hop is looked up next
 *	nexthop.c	next hop -> site, by way of dns; recipients wait here for the answer
 *	delivered.c	what came back on a connection, recorded and counted
 *	door.c		what is known against a recipient before it is taken
 *	suppressed.c	recipients that hosts do not know
 *	suppress_command.c  sluice suppress: the same for the operator
 *	verifier.c	recipient verification: a pseudo-message, and remembered answers
 *	outcome.c	a verdict on a recipient: log, counters, what the spool must remember
 *	delivery_event.c  the same as a line of JSON, for events/
 *	retry.c		the next retry time (pure)
 *	names_away.c	the DNS was away: what was put off for that alone comes back
 *	report_rate.c	limits the rate of reports (pure)
 *	bounce.c	RFC 3464 reports (pure)
 *	report_text.c	the small forms in them: dates, folded lines, xtext
 *	dest_command.c	sluice dest: sites and hosts for the operator
 *	domain_mail.c	where the mail of a domain goes; what waits for one that is suspended
 *	flow_command.c	sluice flow: whose mail, for the operator
 *	flow_mail.c	the mail of a flow that is suspended or resumed
 *	flow_sites.c	where its mail goes that is being worked on
 *	flow_tally.c	what became of the mail of each flow
 *	explain.c	why a message or a site waits; reads only
 *	explain_question.c  question and answer of sluice explain
 *	snapshot.c	the busiest sites, for top and the status page; reads only
 *	snapshot_flows.c  the busiest flows in it
 *
 * Binding is late: an entry is given only to a connection that is ready and has a free place. A
 * connection that fails before that leaves the entries where they were.
 *
 * OWNERSHIP  qmgr owns all of the above; notes are given away by posting.
 * THREAD     qmgr_new() to qmgr_free(): main. All else runs in the loop's thread.
 * ERRORS     None; whatever goes wrong becomes a verdict.
 * SEE        POSTFIX SCHEDULER_README; FINCH 2007.
 */
#ifndef QMGR_QMGR_H
#define QMGR_QMGR_H

#include "base/conf.h"
#include "base/loop.h"
#include "qmgr/dest/edges.h"

#include <stdint.h>

struct qmgr;
struct peer;

/* The same object comes back: a struct explain_question, a struct snapshot. */
enum qmgr_note { QMGR_EXPLAIN = NOTES_FROM(NOTES_OF_QMGR), QMGR_SNAPSHOT };

struct qmgr *qmgr_new(struct conf *); /* takes a reference */
void qmgr_wire(struct qmgr *, const struct qmgr_edges *);
/* Before qmgr_start(); gives the spool its first credit. */

void qmgr_start(struct qmgr *);

void qmgr_rest(struct qmgr *);
/* Posts: give nothing more to connections. What they carry comes to its end, as METRIC_under_way
 * tells. */

void qmgr_stop(struct qmgr *);
void qmgr_conclude(struct qmgr *);
/* After qmgr_stop(), once the spool has answered: mail whose report is stored now comes to its end, so that the next
 * start doesn't try it, and report it, again. No other report is begun. */

void qmgr_free(struct qmgr **);
void qmgr_recall(struct qmgr *, const char *text);
/* Facts that were learnt about hosts before. Before qmgr_start(). */

void qmgr_learnt(struct qmgr *, struct buf *to);
/* The same, to be kept. After qmgr_stop(). */

void qmgr_recall_suppressed(struct qmgr *, const char *text);
void qmgr_suppressed(struct qmgr *, struct buf *to);
/* The same of recipients that hosts do not know. */

void qmgr_recall_flows(struct qmgr *, const char *text);
void qmgr_flows(struct qmgr *, struct buf *to);
/* The same of what became of the mail of each flow. */

struct loop *qmgr_loop(struct qmgr *);
void qmgr_reload(struct qmgr *, struct conf *); /* posts; takes a reference */

/* For a simulation, before anything arrives: */
void qmgr_seed(struct qmgr *, uint64_t seed); /* not 0: chance as in another run */
void qmgr_bind_early(struct qmgr *, void (*bind)(void *context, struct peer *));
/* Where a connection would be opened for this peer, bind() has an agent take its first entry instead
 * (early.h), with the context of the edges. */

#endif
