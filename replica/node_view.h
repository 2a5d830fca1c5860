/* node_view.h - what NATS says of all nodes: who may answer for whose queue.
 *
 * OWNERSHIP  A view is the receiver's; its rows are its own.
 * THREAD     node_view_new(): node. The rest: any.
 * ERRORS     None.
 * SEE        format.h, struct replica_epoch.
 */
#ifndef REPLICA_NODE_VIEW_H
#define REPLICA_NODE_VIEW_H

#include "base/mailbox.h"

#include <stdbool.h>
#include <stdint.h>

struct roster;

struct node_epoch {
	char *name;
	/* up, drained, adopting, adopted, retired; of this node only: doubt, waiting */
	const char *state;
	uint64_t epoch;
	int64_t since_ms; /* up-clock: its row is as it is */
	char *by;	  /* who has written so; "-": nobody yet */
	unsigned number;
};

/* All nodes that are known, this one too, by name. */
struct node_view {
	struct note note; /* NODE_VIEW */
	bool there;	  /* NATS is; else the rows are what it said last */
	int n;
	struct node_epoch *node;
};

struct node_view *node_view_new(const struct roster *);	    /* NULL: it can't be read now */
void node_view_doubt(struct node_view *, const char *node); /* that one's state is "doubt" */

void node_view_waits(struct node_view *, const char *node);
/* One of which NATS says nothing, or nothing yet, has a row all the same: it is waiting. */

void node_view_keep(struct node_view **kept, struct node_view *next);
/* Takes the next one; what is not there leaves the rows of what is kept. */

void node_view_free(struct node_view **); /* NULL is allowed */

#endif
