/* backlog.h - a flow's mail at one queue, and its turn there: start-time fair queuing.
 *
 *	queue: virtual time --- backlogs, by start tag (heap) --- peers that can be selected (heap, by the order of their jobs)
 *	                                                     --- shelves: the same by size and age, for who slips past
 *
 * One that has no more peers is remembered while it is ahead of the virtual time, for else who sends one message at a time would have a turn as often as
 * one whose weight is a hundred times as much. Of a queue where nothing waits nothing is remembered.
 *
 * OWNERSHIP  Of its queue.
 * THREAD     qmgr.
 * STATES     waiting, in queue->backlogs; barred, in neither heap, while its flow is beyond its rate (flow_rate.h); or owing, in
 *            queue->owing.
 * ERRORS     None; misuse asserts.
 * SEE        Goyal, Vin, Cheng 1997; docs/decisions/0129.
 */
#ifndef QMGR_SCHED_BACKLOG_H
#define QMGR_SCHED_BACKLOG_H

#include "base/keyed_hash.h"
#include "qmgr/sched/claim.h"
#include "qmgr/sched/job.h"

struct backlog {
	struct queue *queue;
	struct flow *flow;
	struct claim *claim; /* of its flow; good while waiting */
	struct heap order;   /* struct peer that can be selected */
	struct shelf *shelves;
	uint64_t start; /* virtual time, */
	uint64_t era;	/* of this era of the queue's: those of former ones are forgotten */
	uint64_t
		turn; /* when it was served last: the least first among equals; then whose flow holds least */
	struct list in_all;
	struct list in_flow;	   /* flow->backlogs, unless owing */
	struct heap_item in_queue; /* queue->backlogs, or queue->owing */
	struct heap_item in_turn;  /* claim->queues, while it stands for its queue */
	UT_hash_handle hh;
};

void backlog_add(struct peer *);    /* it can be selected */
void backlog_remove(struct peer *); /* it can't any more */
void backlog_move(struct peer *);   /* it has another place in the order of its flow */

void backlog_charge(struct peer *);
/* One of its entries is selected: its flow pays for it. */

void backlog_give_back(struct peer *);
/* One that was waits again, as if it had not been. */

void backlog_bar(
	struct backlog
		*); /* it waits no more: its flow is barred; the queue is quiet if it was the last */
void backlog_unbar(struct backlog *);
/* The backlog waits again: its flow is not barred any more. */

void backlog_hide(struct queue *);
/* Nobody stands for it in the order of its transport: before its state changes. */

void backlog_show(struct queue *);
/* Its first does, where the state says that something can be done. */

void backlogs_init(struct queue *);
void backlogs_fini(struct queue *); /* no peer is left */

static inline struct backlog *backlog_first(const struct queue *queue)
{
	return queue->backlogs.n
		       ? heap_entry(heap_first(&queue->backlogs), struct backlog, in_queue)
		       : NULL;
}

static inline struct peer *backlog_first_peer(const struct backlog *b)
{
	return heap_entry(heap_first(&b->order), struct peer, in_order);
}

#endif
