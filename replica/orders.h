/* orders.h - what may be said or done only when the stream has all that was written before.
 *
 *	marks, a checkpoint, "complete": a message     a file that is gone: a purge of its subject
 *
 * One after the other, in the order of the log, so that the stream never says that something is dead whose
 * successor it has not.
 *
 * OWNERSHIP  Embedded in struct replica.
 * THREAD     replica.
 * STATES     The first waits for its goals, is under way, or is done and goes.
 */
#ifndef REPLICA_ORDERS_H
#define REPLICA_ORDERS_H

#include "base/list.h"
#include "replica/copy.h"
#include "replica/format.h"

enum order_kind {
	ORDER_MARKS,
	ORDER_COMPLETE,
	ORDER_CHECKPOINT,
	ORDER_GONE,   /* purge a file */
	ORDER_SINCE,  /* purge all that lies before `before` */
	ORDER_NEWEST, /* purge what lies before `before` of the state */
};

struct order {
	struct list link;
	enum order_kind kind;
	struct copy_key key; /* MARKS, GONE */
	uint64_t before;
	struct goals goals;
	struct buf bytes; /* payload of a message */
	bool under_way;
};

struct orders {
	struct list queue;
	int n;
};

void orders_init(struct orders *);
void orders_fini(struct orders *);

struct order *orders_add(struct orders *, enum order_kind, struct copy_key, const void *bytes,
			 size_t len);
/* At the end; its goals are empty. */

struct order *orders_next(struct orders *, enum order_kind, uint64_t before);
/* Behind the first. */

struct order *orders_at_once(struct orders *, enum order_kind); /* before all others */

bool order_is_purge(enum order_kind);
struct order *orders_first(const struct orders *); /* or NULL */
void orders_done(struct orders *);		   /* the first */

#endif
