/* qmgr_thread.h - the state of the queue manager: its rooms, and what belongs to the thread itself.
 *
 * OWNERSHIP  One struct qmgr a program; it owns every object in its tables.
 * THREAD     qmgr.
 */
#ifndef QMGR_QMGR_THREAD_H
#define QMGR_QMGR_THREAD_H

#include "base/few.h"
#include "base/fine_timer.h"
#include "qmgr/dest/destdb.h"
#include "qmgr/door.h"
#include "qmgr/flow_tally.h"
#include "qmgr/names_away.h"
#include "qmgr/qmgr.h"
#include "qmgr/report_rate.h"
#include "qmgr/route/route.h"
#include "qmgr/sched/scheduler.h"
#include "qmgr/suppressed.h"
#include "qmgr/verifier.h"

struct qmgr {
	struct scheduler sched;
	struct destdb db;
	struct route_table *routes;

	/* hash tables (uthash) */
	struct message *messages; /* by id */
	struct nexthop *nexthops; /* by key */
	struct nexthop *
		led_last; /* the one that was looked for last: most mail that goes by a relay has one. Or NULL */
	struct buf hop_key; /* of it, as it is written */

	struct few alike;     /* messages with a recipient or few: message.c */
	struct list to_route; /* struct flow with messages whose look-ups have not begun */
	struct list starved;  /* struct message, unread, for which there is no room in memory */
	struct door door;
	struct suppressed suppressed;
	struct verifier verifier;
	struct names_away names_away;
	struct list brisk;	  /* struct nexthop that are being looked up, by age, */
	int64_t lookups;	  /* and their number; */
	int64_t lagging;	  /* and of those that have waited long for their answers */
	struct timer router_tick; /* one will lag */
	bool router_due;	  /* one has ended, or lags: others may begin */
	int64_t credit;		  /* given to the spool so far */
	int64_t began_ms;	  /* wall clock: the start */
	int64_t began_steady_ms;  /* steady clock: likewise */
	bool resting;		  /* nothing is given to connections any more */
	struct report_rate reports;
	struct list unreported; /* struct message whose report waits until others are stored */
	struct list releases;	/* struct flow_release: flows that were resumed */
	struct flow_tallies tallies;
	int storing;	/* reports under way to the spool */
	bool concludes; /* qmgr_conclude(): no other is begun */
	struct {
		uint64_t id;		  /* of the latest; 0: none yet */
		int64_t unmarked, untold; /* lost, and not told yet in a line, in the log */
		int64_t told_ms;	  /* steady clock; 0: never */
	} events;			  /* delivery_event.h */
	struct timer collect;	/* removes records that nobody needs, and saves the others */
	struct timer ends;	/* looks for messages whose end is near */
	struct fine_timer rest; /* the end of qmgr_thread_rest(), */
	int64_t rest_until_us;	/* and when it is; steady clock */
};

void qmgr_thread_init(struct qmgr *, struct conf *, struct loop *);
/* Begins its rooms. Takes over the reference on the configuration. */

void qmgr_thread_settle(struct qmgr *);
/* Give places to entries and open connections, wherever something has changed. Called once after
 * each batch of notes and each timer. */

void qmgr_thread_rest(struct qmgr *);
/* Notes that come back from connections may wait for company: for others of its kind while mail waits for their places, else for the next mail.
 * Each wake-up costs as much as a message or two. After qmgr_thread_settle(), at the end of a batch. */

void qmgr_thread_save(struct qmgr *);
/* Have what was learnt written to disk, if something was since the last time. */

void qmgr_thread_fini(struct qmgr *);
/* Forget everything: the spool has it, and what was under way is tried again at the next start. */

#endif
