/* glance.h - a summary of the scheduler's state, made at most once a second while somebody looks.
 *
 *	glance_at() -- younger than a second? --> look(), at once
 *	     |
 *	     +-- else QMGR_SNAPSHOT --> qmgr --> glance_taken() --> look() of all that wait
 *
 * OWNERSHIP  Embedded; whoever looks keeps its glancer until look() or glance_leave().
 * THREAD     The loop's.
 * ERRORS     None. Once qmgr has ended nobody is answered any more.
 */
#ifndef CMD_CONTROL_GLANCE_H
#define CMD_CONTROL_GLANCE_H

#include "base/list.h"
#include "qmgr/snapshot.h"

#include <stdbool.h>

struct glance {
	struct loop *loop, *qmgr;
	struct snapshot *last; /* or NULL */
	int64_t taken_ms;      /* steady clock */
	bool asked;
	struct list waiting;
};

struct glancer {
	struct list link;
	void (*look)(struct glancer *, const struct snapshot *); /* which is good for this call */
};

void glance_init(struct glance *, struct loop *, struct loop *qmgr);
void glance_fini(struct glance *);
void glance_at(struct glance *, struct glancer *);
void glance_leave(struct glancer *); /* also if it does not wait */
void glance_taken(struct glance *, struct snapshot *);

#endif
