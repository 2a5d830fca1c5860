/* transfer.h - the messages of a queue that was made again from its copy become this one's.
 *
 *	FOLDER --> spool_look --> batches: ids noted, stored, answered --> this node's queue
 *
 * Each keeps its id, envelope, history and content; what was being delivered is due now, and is told of as after any
 * crash: recipients without a recorded verdict are tried again. What a wrong clock has written is put right by as much as it differs from ours,
 * so that no message is too old here, or due in a year. Nobody works on any of them before
 * SPOOL_ADOPTED (spool/adoption.h). What this queue has already is passed over, so that it can be done once more
 * after a crash.
 *
 * OWNERSHIP  The caller's. It has to outlive the spool's thread, which may be about to wake it when the last answer has come.
 * THREAD     transfer_run(): one at a time, of its own: it blocks while disks and the copy of this queue do.
 * ERRORS     False: it was interrupted, or error says why, as when the queue has no room for long; what was taken stays,
 *            and is passed over next time. A
 *            message whose content is missing or damaged is logged and counted, and left where it is.
 */
#ifndef REPLICA_TRANSFER_H
#define REPLICA_TRANSFER_H

#include "base/conf.h"

#include <stdatomic.h>

struct spool;
struct transfer;

struct transfer *transfer_new(struct conf *, struct spool *, const atomic_bool *interrupt);
void transfer_free(struct transfer **);

struct transferred {
	uint64_t messages, doubtful, damaged;
};

void transfer_begin(struct transfer *);
/* A queue is to be taken for the first time, or once more after it was given back: what is in doubt is named, which it is not each time that
 * transfer_run() finds no room for it. */

struct transfer_of {
	const char *node; /* whose queue it was */
	const char *
		doubt; /* why each message may have been delivered already, and is to be named; NULL: it has not */
	int64_t ahead_ms; /* so much the clock of that queue is ahead of the one here */
};

bool transfer_run(struct transfer *, const char *folder, const struct transfer_of *,
		  struct transferred *, struct buf *error);
/* Of the queue in that folder. What came of it is said in any case. */

#endif
