/* commit.h - what is to be written, and group commit.
 *
 *	op:  todo -- written --> in effect -- synced --> settled
 *	       ^                    |
 *	       +--- the sync failed, or a later one before it was settled: written once more
 *
 * In effect: the answer is posted, the index points to the new record. Settled: what the record
 * replaces is let go of, for only now can the new one not be lost. A store and a delivery are in
 * effect only after the sync; the others follow with the next one.
 *
 * OWNERSHIP  That of ops is in op.h.
 * THREAD     spool.
 * ERRORS     A batch that can't be written or synced: its stores are answered with stored = false,
 *            moves are forgotten, all other ops are written again to a fresh segment, now or when
 *            one can be had.
 */
#ifndef SPOOL_COMMIT_H
#define SPOOL_COMMIT_H

#include "spool/op.h"

void commit_run(struct spool *);
bool commit_now(struct spool *);
/* The same, and whatever is written is synced. False: the disk fails, and there is something left
 * to be written. */

bool commit_records(struct spool *, struct op *, struct buf *payload);
/* Add the records of one op to the journal, and say in it where they lie. payload: to build them in.
 * False: there is no room. */

#endif
