/* early.h - the other binder: early, like Postfix, for simulations that compare both.
 *
 *	dispatch --> bind_early() --> early_take() --> an agent tries one host after the other
 *	                                                  |
 *	             every host has failed: early_failed() <--+--> early_delivered()
 *	                                       |                         |
 *	                                       +------> early_end() <----+
 *
 * An entry is taken first, and is then bound to an agent that has yet to find a connection: when none is to be
 * had, the entry is deferred. The agent is the simulation's; the slot that it uses, the verdicts and the
 * window are counted here, as dispatch.c and conn.c do it for entries that are bound late. A site that
 * died lives again when minimal_backoff_time is over; nothing is probed, and what waits for it is
 * deferred at once.
 *
 * OWNERSHIP  Embedded in the agent, from early_take() to early_end() or early_drop().
 * THREAD     qmgr.
 * ERRORS     None; misuse asserts.
 * SEE        POSTFIX qmgr_deliver.c, qmgr_queue.c.
 */
#ifndef QMGR_DEST_EARLY_H
#define QMGR_DEST_EARLY_H

#include "qmgr/dest/site.h"
#include "qmgr/sched/job.h"

struct early {
	struct site *site;
	struct entry *entry; /* the agent delivers it */
};

void early_take(struct early *, struct peer *);
/* A slot for its first entry: what bind_early() is called for. */

void early_failed(struct early *, struct verdict *why);
/* No connection was to be had: all of the entry is deferred, and the window fed. */

void early_delivered(struct early *, struct verdict *const *verdict);
/* One for each of its recipients. */

void early_end(struct early *);
/* After either: the slot is free, and used again at once perhaps. */

void early_drop(struct early *);
/* Instead: everything ends. */

void early_see_to(struct site *);
/* Where its time is over it lives again. */

#endif
