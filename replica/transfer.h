/* transfer.h - the messages of a queue that was made again from its copy become this one's.
 *
 *	FOLDER --> spool_look --> batches: ids noted, stored, answered --> this node's queue
 *
 * Each keeps its id, envelope, history and content; what was being delivered is due now, and is told of as after any
 * crash: recipients without a recorded verdict are tried again. Nobody works on any of them before
 * SPOOL_ADOPTED (spool/adoption.h). What this queue has already is passed over, so that it can be done once more
 * after a crash.
 *
 * THREAD     One of its own: it blocks while disks and the copy of this queue do.
 * ERRORS     False: it was interrupted, or error says why; what was taken stays, and is passed over next time. A
 *            message whose content is missing or damaged is logged and counted, and left where it is.
 */
#ifndef REPLICA_TRANSFER_H
#define REPLICA_TRANSFER_H

#include "base/conf.h"

#include <stdatomic.h>

struct spool;

struct transfer {
	struct conf *conf;
	struct spool *spool;
	const char *folder; /* of the queue that is read */
	const char *node;   /* whose it was */
	atomic_bool *interrupt;
	uint64_t messages, doubtful, damaged; /* what came of it */
};

bool transfer_run(struct transfer *, struct buf *error);

#endif
