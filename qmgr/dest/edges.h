/* edges.h - where the queue manager's notes go; main wires these to the real threads, a test or a
 * simulation to itself.
 *
 * OWNERSHIP  Notes are given away.
 * THREAD     Called in qmgr's.
 */
#ifndef QMGR_DEST_EDGES_H
#define QMGR_DEST_EDGES_H

#include "base/loop.h"

struct conf;
struct spool_store;

struct qmgr_edges {
	void (*to_spool)(void *context, struct note *);
	void (*to_dns)(void *context, struct note *);
	void (*to_worker)(void *context, int worker, struct note *);
	void (*to_sts)(void *context, struct note *); /* NULL: MTA-STS is not asked for */
	struct loop *reports;			      /* gets TLS_RESULT; NULL: nobody counts */
	void *context;
	int workers;				       /* at least 1 */
	void (*to_main)(void *context, struct note *); /* DEST_SAVE; NULL: nobody saves */
	void (*report)(void *context, struct conf *, struct spool_store *);
	/* A report of ours, to be signed and stored; NULL: it goes to the spool at once. */
	void (*to_cluster)(void *context, struct note *);
	/* base/fact.h, base/sharing.h; NULL: this node is alone */
	void (*to_events)(void *context, struct note *); /* EVENT_LINE; NULL: nobody is told */
};

#endif
