/* large_sync.h - syncs files of large contents apart from the spool's thread, several at once.
 *
 *	SPOOL_STORE with a file --> [ queue ] --> a thread of the pool: file and name synced
 *	                                            |
 *	spool: an op of the next batch <------------+ SPOOL_NOTE_LARGE_SYNCED
 *
 * Megabytes take a disk as long as hundreds of batches do, whose clients would wait for them. The envelope
 * that names a file is written only after its sync, in a batch like any other.
 *
 * Each sync has a descriptor of its own for the folder: of an error in writing it back the kernel tells
 * each descriptor once, and whoever has made a name since must be told.
 *
 * OWNERSHIP  A store that was given away comes back in the note.
 * THREAD     spool; large_sync_start() and large_sync_stop() main.
 * ERRORS     The note says what failed; then the message is to be refused.
 */
#ifndef SPOOL_LARGE_SYNC_H
#define SPOOL_LARGE_SYNC_H

#include "base/thread_pool.h"
#include "spool/spool_core.h"

struct large_sync {
	struct thread_pool_job job;
	struct note note;
	struct spool *spool;
	struct spool_store *store;
	int error; /* of the system, or 0 */
};

void large_sync_init(struct spool *);
void large_sync_start(struct spool *);
void large_sync_stop(struct spool *); /* no thread is left; what it has synced is in the mailbox */
void large_sync_fini(struct spool *);

void large_sync_give(struct spool *, struct spool_store *);
struct spool_store *large_sync_take(struct spool *, struct note *, int *error);

#endif
