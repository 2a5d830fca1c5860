/* claim.h - what a flow holds of a transport's connections, and where it comes in the transport's order.
 *
 *	transport --- claims, by state of the queues that they have   (heap: who holds least by weight comes first)
 *	                 |
 *	                 +--- queues of that state whose first backlog is the flow's   (heap, by their first peer)
 *	                 +--- sizes: the shelves of those, for who slips past
 *
 * OWNERSHIP  Of its flow; a claim is there while the flow has a job on the transport.
 * THREAD     qmgr.
 * SEE        docs/decisions/0129.
 */
#ifndef QMGR_SCHED_CLAIM_H
#define QMGR_SCHED_CLAIM_H

#include "qmgr/sched/flow.h"
#include "qmgr/sched/heap.h"
#include "qmgr/sched/queue.h"

struct candidate_cache {
	const struct job *current; /* for which was searched */
	struct job *best;	   /* or NULL */
	uint64_t shelved;
	int64_t looked_ms;
	enum queue_state up_to;
};

struct claim {
	struct flow *flow;
	struct transport *transport;
	int64_t njob;
	int64_t under_way; /* entries on connections, and connections opened for some */
	uint64_t turn;	   /* of the transport's selections: when it was served last */
	uint64_t number;   /* its own */
	struct list in_flow;
	struct heap queues[QUEUE_STATES];	/* struct backlog that stands for its queue */
	struct heap_item in_turn[QUEUE_STATES]; /* transport->claims, while there are such */

	/* shelf.h */
	struct shelf_size *sizes; /* the smallest first */
	uint64_t shelved;	  /* changes of what the search for a candidate looks at */
	struct candidate_cache candidate_cache;
};

struct claim *claim_join(struct flow *, struct transport *); /* one job more; made at first use */
void claim_part(struct claim *);			     /* one less; the last frees it */

void claim_count(struct claim *, int64_t n); /* so many more are under way; below 0: fewer */
uint64_t claim_held(const struct claim *);   /* by weight */
void claim_served(struct claim *);	     /* it has had a turn of the transport's */

void claim_rank(struct claim *, enum queue_state);
/* The claim may have got its first queue of this state, or lost the last. */

struct claim *claim_first(const struct transport *, enum queue_state up_to, enum queue_state *);
/* Whose turn it is, and at a queue of which state; NULL: nobody's. up_to: the last state that counts (queue.h). */

#endif
