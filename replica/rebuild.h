/* rebuild.h - make the folder of a queue again from what its stream held.
 *
 *	stream's messages --> rebuild_keep() --> a file, one after the other --> rebuild_run() --> FOLDER/log,
 *	                                                                                   large, format
 *
 * What counts is known only when all has been seen (format.h), so they are kept first, and read twice. The
 * result is read as any queue is that no relay has (spool/spool_look.h).
 *
 * OWNERSHIP  Descriptors are the caller's.
 * THREAD     One.
 * ERRORS     False and errno; a message that is not of the format counts as none and is told of by rebuild_keep().
 * SEE        format.h, "What counts"
 */
#ifndef REPLICA_REBUILD_H
#define REPLICA_REBUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool rebuild_keep(int file, uint64_t *at, const void *message, size_t len);
/* Add it at this offset, which moves on. */

bool rebuild_run(int folder, int file, uint64_t end, uint64_t since, bool *hollow);
/* The folder is empty but for that file. All that is written is synced. Epochs before since are of a former life, and
 * count as none. hollow: of what an epoch has the beginning is gone, and no epoch is complete: what is there counts as none. */

#endif
