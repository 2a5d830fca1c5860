/* copy_orders.h - what may be said or done only when the stream has all that was written before.
 *
 *	marks, a checkpoint, "complete": a message     a file that is gone: a purge of its subject
 *
 * One after the other, so that the stream never says that something is dead whose successor it has not. What
 * waits, for hours perhaps, waits in the order in which one needs the other, and takes no more than the queue
 * has files: marks, then the last checkpoint only, then what is gone.
 *
 * OWNERSHIP  Embedded in struct replica.
 * THREAD     replica.
 * STATES     The first waits for its goals, is under way, or is done and goes. Goals are set for all that wait
 *            then, so that those of an order are never older than itself.
 */
#ifndef REPLICA_COPY_ORDERS_H
#define REPLICA_COPY_ORDERS_H

#include "base/buf.h"
#include "base/list.h"
#include "replica/copy.h"

/* In the order in which they wait. */
enum order_kind {
	ORDER_ROOM, /* purge what only keeps room: it waits for nothing */
	ORDER_MARKS,
	ORDER_COMPLETE, /* with the checkpoint that is the last when it is sent */
	ORDER_SINCE,	/* purge all that lies before `before` */
	ORDER_NEWEST,	/* purge what lies before `before` of the state */
	ORDER_CHECKPOINT,
	ORDER_GONE, /* purge a file */
};

struct order {
	struct list link;
	enum order_kind kind;
	struct copy_key key; /* MARKS, GONE */
	uint64_t before;     /* SINCE, NEWEST */
	uint64_t keep;	     /* ROOM: so many messages stay */
	struct buf bytes;    /* payload of a message */
	bool under_way;
};

struct orders {
	struct list queue;
	int n;
	int covered; /* so many of them, from the first on, the goals are for */
	struct goals goals;
};

void orders_init(struct orders *);
void orders_fini(struct orders *);

struct order *orders_add(struct orders *, enum order_kind, struct copy_key);
/* Where it belongs; its bytes are empty. A checkpoint replaces the one that waits. */

struct order *orders_gone(const struct orders *, struct copy_key); /* to purge that file; or NULL */
void orders_forget_gone(struct orders *, struct order *);	   /* which has not begun */
void orders_forget_marks(struct orders *, struct copy_key);	   /* that file is going */
void orders_forget_numbers(struct orders *); /* the stream is another, in which they mean nothing */

struct order *orders_first(const struct orders *); /* or NULL */
bool orders_may(struct orders *, struct copies *); /* the goals of the first are reached */
void orders_done(struct orders *);		   /* the first */

void orders_again(struct orders *);
/* Nobody knows whether the first, a message, has come: it is sent again, but a checkpoint that another has replaced meanwhile. A
 * purge has an answer all the same. */

bool orders_any_gone(const struct orders *); /* a file is to be purged */
void orders_each_gone(const struct orders *, void (*take)(void *owner, struct copy_key),
		      void *owner);
bool order_is_purge(enum order_kind);

#endif
