/* effect.h - what follows from an op once it is written, and once it is synced.
 *
 * OWNERSHIP  effect_settled() and effect_refused() free the op.
 * THREAD     spool.
 * SEE        commit.h for the life of an op.
 */
#ifndef SPOOL_EFFECT_H
#define SPOOL_EFFECT_H

#include "spool/op.h"

void effect_written(struct spool *, struct op *);
void effect_settled(struct spool *, struct op *);
void effect_sync_taken(struct spool *);
/* At the end of a batch: what was taken from the maildrop and is stored does not come back. */
void effect_refused(struct spool *, struct op *); /* OP_STORE: it could not be stored */
void effect_withdraw(struct spool *, struct op *);
/* OP_STORE: it is synced, and to be refused all the same: it has a finish record in the next batch. Frees
 * the op. */

void effect_cancel(struct spool *, const struct stub *); /* ask qmgr to let go of it */

#endif
