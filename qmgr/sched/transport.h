/* transport.h - a named set of limits, and the work that is under way in it.
 *
 * OWNERSHIP  The scheduler's table; a transport stays until the program ends, since sites and jobs
 *            refer to it. It holds a reference on the configuration that its settings lie in.
 * THREAD     qmgr.
 * SEE        POSTFIX SCHEDULER_README, "The structures used by nqmgr".
 */
#ifndef QMGR_SCHED_TRANSPORT_H
#define QMGR_SCHED_TRANSPORT_H

#include "base/keyed_hash.h"
#include "base/metrics.h"
#include "base/verdict.h"
#include "qmgr/sched/heap.h"
#include "qmgr/sched/queue.h"
#include "qmgr/sched/scheduler.h"

#include <stdbool.h>

struct transport {
	char *title;
	struct conf *conf;
	const struct conf_transport *settings;
	struct scheduler *scheduler;
	struct list jobs; /* struct job, oldest message first */

	/* its slots, which are connections: conn_move() keeps these */
	int connections;    /* of all its sites */
	int ending;	    /* of them, told to close */
	int nidle;	    /* ready and carrying nothing, in: */
	struct list idle;   /* struct conn, the longest first */
	int nunready;	    /* being opened */
	int nprobing;	    /* of them, such that no mail waits for */
	int nstalled;	    /* were ready, and their hosts owe an answer for long */
	int nlingering;	    /* of them, told to close when that has come */
	int nsilent;	    /* being opened, that have not been heard of for some time, in: */
	struct list silent; /* struct conn, the longest first */
	struct list turned; /* struct conn, carrying and has had its turn: the longest first */
	struct list
		stalled; /* struct conn, of nstalled those that can end at once: the longest first */
	struct list probing; /* struct site, whose probe wants a connection: the longest first */
	struct metric_cell *outcome[VERDICT_CLASSES]; /* how many verdicts of each class */

	/* selection.h */
	struct heap claims[QUEUE_STATES]; /* struct claim */
	uint64_t nclaim;		  /* so far */
	int64_t nqueue[QUEUE_STATES];	  /* in this state */
	uint64_t turns;			  /* selections so far */

	/* pool.h */
	int64_t rcpt_count;	 /* recipients in memory */
	int64_t rcpt_unused;	 /* slots not lent; below 0: of the extra pool */
	struct job *next_unread; /* the oldest whose message has unread recipients, or NULL */

	struct list parked; /* struct job: may not have another connection now, see dispatch.h */
	bool unpark;	    /* some of them may again */
	UT_hash_handle hh;
};

struct transport *transport_get(struct scheduler *, const struct conf_transport *);
/* By title; made at first use. */

void transports_configure(struct scheduler *, struct conf *);
/* Let every transport take its settings from this configuration; one that is no longer in it keeps
 * what it had. */

void transports_count(const struct conf *); /* make the counters of each */
bool transport_full(const struct transport *);
int transport_ending(const struct transport *);	     /* connections that are about to end */
int64_t transport_wanting(const struct transport *); /* queues that would have a slot opened */
void transports_free(struct scheduler *);

#endif
