/* order_job.h - what jobs of `dest`, `flow`, `suppress` and `user` begin with, what comes of an order for all nodes, and what
 * those who look through the queue end with.
 *
 * OWNERSHIP  The request stays the control socket's; what is refused is finished here.
 * THREAD     Main.
 * ERRORS     Told to the operator.
 */
#ifndef CMD_CONTROL_ORDER_JOB_H
#define CMD_CONTROL_ORDER_JOB_H

#include "cmd/control/control.h"
#include "cmd/text/order_args.h"
#include "cmd/text/queue_print.h"

struct loop;

/* Who has asked the spool, as spool_command->asker; 0: a job of the queue. */
enum control_asker { CONTROL_ASKS_EXPLAIN = 1, CONTROL_ASKS_USER };

bool order_job_begins(struct request *, const struct order_args *, bool parsed,
		      const struct loop *cluster, struct buf *error);
/* False: it was refused, for what error says or since there are no other nodes. cluster: NULL then. */

/* Whom a job asks, and where the answers come to. cluster is NULL where this node is alone. */
struct order_job_asks {
	struct loop *loop, *qmgr, *cluster;
	char *const *unkept; /* not NULL: what was ordered could not be written to its file yet */
};

bool order_job_is_written(struct request *, const char *unkept);
/* Of an order that outlives a restart, before it is finished. False: it is done, and the client was told that it may be undone. */

bool order_job_is_kept(struct request *, enum order, char *const *unkept);
/* The same of any order: only suspend and resume outlive a restart. */

bool order_job_has_read(struct request *, const struct queue_unread *);
/* Before a request is finished that is about the whole queue, or a domain's part of it. False: the client was told how many
 * messages could not be read. */

void order_job_nothing_done(struct request *, const char *why); /* NULL: the client has gone */

#endif
