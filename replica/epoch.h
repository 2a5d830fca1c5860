/* epoch.h - the epoch of a node, in the bucket that all nodes share.
 *
 * A compare-and-set on the revision: of two that take an epoch at once one does.
 *
 * THREAD     As nats_setup.h: calls that block.
 * ERRORS     The library's status.
 * SEE        format.h, "Epochs".
 */
#ifndef REPLICA_EPOCH_H
#define REPLICA_EPOCH_H

#include "replica/nats_setup.h"

natsStatus epoch_bucket(struct nats_setup *, kvStore **);
/* Have the bucket; kvStore_Destroy() ends it. */

natsStatus epoch_take(struct nats_setup *, uint64_t *epoch, bool *fenced);
/* *epoch is 0: take the one after that in the bucket, for this node. Else see whether that one still holds;
 * fenced: it does not. */

#endif
