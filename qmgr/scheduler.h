/* scheduler.h - what all the scheduler's parts hang on.
 *
 * OWNERSHIP  One struct qmgr a program; it owns every object in its tables.
 * THREAD     qmgr.
 */
#ifndef QMGR_SCHEDULER_H
#define QMGR_SCHEDULER_H

#include "base/list.h"
#include "qmgr/report_rate.h"
#include "qmgr/qmgr.h"
#include "qmgr/route.h"

#include <stdbool.h>
#include <stdint.h>

struct qmgr {
	struct conf *conf;
	struct loop *loop;
	struct qmgr_edges edges;
	void (*bind_early)(void *context, struct peer *); /* NULL: entries are bound late */
	struct route_table *routes;

	/* hash tables (uthash) */
	struct transport *transports;  /* by title */
	struct message *messages;      /* by id */
	struct nexthop *nexthops;      /* by key */
	struct site *sites;	       /* by key */
	struct host *hosts;	       /* by key */
	struct conn *conns;	       /* by number */
	struct suspended *suspended;   /* by name */
	struct remembered *remembered; /* by the key of a site */
	struct site **numbered;	       /* by number: sites that mail in the queue waits for */
	unsigned last_site;	       /* number given last */

	struct list dirty;    /* struct site: something has changed, scheduler_settle() looks */
	struct list to_route; /* struct message with recipients whose look-up has not begun */
	struct list starved;  /* struct message, unread, for which there is no room in memory */
	int64_t lookups;      /* of next hops under way */
	bool router_due;      /* one has ended: others may begin */
	bool reader_due;      /* there may be room */
	int64_t rcpt_count;   /* recipients in memory, see pool.h */
	uint64_t last_order;  /* of the message taken up last */
	uint64_t last_conn;   /* number of the newest connection */
	int64_t credit;	      /* given to the spool so far */
	uint64_t chance;      /* state of scheduler_chance() */
	uint64_t rounds;      /* of scheduler_settle() */
	int64_t congested_ms; /* steady clock: the last warning of that; 0: none */
	bool resting;	      /* nothing is given to connections any more */
	struct report_rate reports;
	struct timer collect; /* removes records that nobody needs, and saves the others */
	bool learnt;	      /* something about hosts that is to outlive the process */
};

int64_t scheduler_now_ms(const struct qmgr *); /* steady clock, of this wake-up */
double scheduler_chance(struct qmgr *);	       /* 0 <= result < 1 */
void scheduler_settle(struct qmgr *);
/* Give places to entries and open connections, wherever something has changed. Called once after
 * each batch of notes and each timer. */

void scheduler_save(struct qmgr *);
/* Have what was learnt written to disk, if something was since the last time. */

void scheduler_seed(struct qmgr *);
void scheduler_start_collecting(struct qmgr *);
void scheduler_fini(struct qmgr *);
/* Forget everything: the spool has it, and what was under way is tried again at the next start. */

#endif
