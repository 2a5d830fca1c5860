/* scheduler.h - the room of the scheduler: which entry is next, on which queue.
 *
 *	flow --- work --- job (one a transport) --- peer (one a next hop) --- entry
 *	                                             |
 *	                        claim <--- order --- backlog --- queue --- "has a place", "would grow" <--- who has slots
 *	transport: selection <--- order --+
 *
 * It knows slots, not connections: a queue is told what it could be given (queue_state), and says whose
 * turn it is. What is done with an entry is known above: in dest/, and in the thread around both.
 *
 *	work.h		a message as the scheduler sees it: its age, its jobs, its recipients in memory
 *	job.c		a message's work on one transport: peers, and entries of so many recipients
 *	queue.h		a destination as the scheduler sees it: the peers that wait for it
 *	transport.c	a named set of limits, with its jobs and its slots
 *	flow.c		whose mail it is
 *	backlog.c	a flow's mail at a queue, and its turn there: start-time fair queuing
 *	claim.c		what a flow holds of a transport, and its turn there
 *	selection.c	which entry is next: the order of jobs, blockers
 *	shelf.c		candidates for slipping past, by size and age
 *	preempt.c	what slipping past costs: slots, parents and children (pure)
 *	pool.c		how many recipients may be in memory, and whose: slots, lent along the list of jobs
 *	share.c		how many workers one message may have (pure)
 *	window.c	how many connections a site may have: Postfix's feedback (pure)
 *	flow_rate.c	so many deliveries of a flow in a time: its backlogs leave the order, and come back
 *	pace.c		deliveries in a time (pure)
 *	line.c		places in an order, which never run out
 *	heap.c		a heap whose entries can change their order
 *
 * Included by dest/ and by qmgr/; includes base/ alone.
 *
 * OWNERSHIP  One struct scheduler a queue manager, embedded in that (thread.h).
 * THREAD     qmgr.
 * SEE        POSTFIX SCHEDULER_README.
 */
#ifndef QMGR_SCHED_SCHEDULER_H
#define QMGR_SCHED_SCHEDULER_H

#include "base/conf.h"
#include "base/few.h"
#include "base/list.h"
#include "base/loop.h"

#include <stdbool.h>
#include <stdint.h>

struct job;
struct queue;

struct scheduler {
	struct conf *conf;
	struct loop *loop;
	struct transport *transports; /* by title (uthash) */
	struct transport
		*asked; /* of them, that which was asked for last: it mostly is again; or NULL */
	struct flow *flows;  /* by name (uthash) */
	struct flow *joined; /* of them, likewise */
	struct list active;  /* struct work, oldest first */
	int64_t nactive;
	int64_t waiting,
		under_way;   /* entries: that no connection carries yet; granted, or carried */
	struct list dirty;   /* struct queue: something has changed */
	int64_t rcpt_count;  /* recipients in memory, see pool.h */
	bool reader_due;     /* there may be room for more */
	uint64_t last_order; /* of the work that was begun last */
	uint64_t chance;     /* state of scheduler_chance() */
	struct few jobs, peers, entries; /* each message has at least one of each: job.c */

	void (*refill)(struct job *);
	/* One of its entries was selected: further recipients of its message may be read now, into
	 * entries of their own. Set before the first job. */

	void (*settle)(struct scheduler *);
	/* A time has come: let what can be done now be done. */

	void (*share)(struct scheduler *, struct note *);
	/* To the cluster (base/sharing.h). NULL, as at first: this node is alone. */
};

void scheduler_init(struct scheduler *, struct conf *, struct loop *, void (*refill)(struct job *),
		    void (*settle)(struct scheduler *));
/* The configuration and the loop stay the caller's. */

void scheduler_fini(struct scheduler *); /* no work is left */

static inline int64_t
scheduler_now_ms(const struct scheduler *sched) /* steady clock, of this wake-up */
{
	return sched->loop->now_ms;
}

double scheduler_chance(struct scheduler *); /* 0 <= result < 1 */

void scheduler_touch(struct queue *);
/* Something has changed at it: whoever goes through the dirty ones looks. */

#endif
