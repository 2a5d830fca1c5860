/* node.h - this node among the others: it proves that it lives, and takes up the queue of one that does not.
 *
 *	              +---------- renews its row ------------> bucket
 *	fence <------ | node | <-- reads all rows ------------ bucket
 *	main  <- LOST |      | -- epoch_adopt() says so: row --> bucket   one wins
 *	              +------+
 *	                 | a thread "adopt": harvest.h, then transfer.h, for each node of a unit
 *	                 v
 *	              rows say ADOPTED --> SPOOL_ADOPTED: the messages are worked on
 *
 * **A unit.** Who is adopted may have been adopting another; then both belong together: all of it is taken before any
 * of it is worked on (spool/adoption.h).
 *
 * **What is left.** What an adoption before the last start had taken is taken further, or is ours, or is given up where another has it by now: the rows say
 * which (node_left.h).
 *
 * **No room.** A queue is claimed by who has room for it. What fails for long, while others live, is given back: gone
 * from our queue first (SPOOL_DISOWN), then in its row, which anybody may take.
 *
 * **A start** takes no mail and delivers none until the node has its next epoch. If its queue was adopted
 * meanwhile, the relay starts once more, and puts it aside (life.h). One whose folder is older than its row or its
 * stream waits for the operator (EPOCH_DOUBT). **A node that can't renew** is fenced
 * half of adopt_after after its last success; then the relay starts again and waits as after any start.
 *
 * OWNERSHIP  node_new() makes it; a node_order is given away and comes back.
 * THREAD     node_new() to node_free(): main. node_post(): any. Its own thread blocks in the library.
 * STATES     waiting, up, lost; the events `node` say so.
 * ERRORS     Logged, and tried again with the next renewal.
 * SEE        epoch.h, CLUSTER in sluice(8).
 */
#ifndef REPLICA_NODE_H
#define REPLICA_NODE_H

#include "base/buf.h"
#include "base/conf.h"
#include "base/loop.h"
#include "replica/node_view.h"

struct node;
struct replica;
struct spool;

enum node_note_type {
	NODE_ORDER = NOTES_FROM(NOTES_OF_NODE),
	NODE_LOST,
	NODE_TAKEN,
	NODE_VIEW,
	NODE_DENIED,
	NODE_CONF,
};

enum node_op { NODE_ADOPT, NODE_RETIRE, NODE_MAY_DRAIN };

struct node_order {
	struct note note; /* NODE_ORDER, both ways */
	enum node_op op;
	char *name; /* of a node, or NULL */
	struct loop *reply_to;
	void *owner;
	struct buf says; /* the answer, a sentence */
	bool done;
};

struct node_order *node_order_new(enum node_op, const char *name, struct loop *reply_to,
				  void *owner);
void node_order_free(struct node_order **);

struct node *node_new(struct conf *, struct spool *, struct replica *, struct loop *main,
		      struct buf *error);
/* NULL without a replica; or, with a sentence in error, when its own file can't be read. The fence is closed
 * from then on. NODE_LOST is posted to main: the relay is to start again; NODE_VIEW, with each
 * renewal and after each order: nobody waits for NATS to see what it said last. */

void node_watch(struct node *, struct loop *); /* before the start: it gets NODE_VIEW, too */

void node_start(struct node *); /* NULL is allowed, here and below, and for node_watch() */

void node_wait(const struct node *);
/* A moment, for the epoch, so that clients wait rather than be refused. */

void node_reload(struct node *, struct conf *);
/* Of what a reload may change: how much of the disk is to stay free. Any thread. */

void node_post(struct node *, struct node_order *);
void node_drain(struct node *); /* at its end, say that the queue is to be adopted at once */
bool node_drains(const struct node *);
void node_interrupt(struct node *);
/* Begin nothing more, unless it is to drain, so that whoever stops it does not wait for what nobody answers. After the spool has
 * stopped: the epoch is not renewed any more. */

const char *node_stop(struct node *, bool whole);
/* After the spool and the replica have stopped, which it renews the epoch for. Why its queue, which was to be
 * drained, is not to be adopted at once; else NULL. */

void node_free(struct node **);

#endif
