/* removal.h - files that nobody needs any more go apart from the spool's thread.
 *
 * With its last name and its last descriptor the kernel takes a file's pages and blocks back: 0.3 ms for each
 * megabyte, for which all clients would wait.
 *
 * OWNERSHIP  The reference is taken.
 * THREAD     spool; the work is the pool's.
 * ERRORS     A name that stays is removed by the next recovery. Where the pool takes nothing more, it is done
 *            at once.
 */
#ifndef SPOOL_REMOVAL_H
#define SPOOL_REMOVAL_H

#include "base/content.h"
#include "base/thread_pool.h"

void removal_of_file(struct thread_pool *, struct content_file *); /* it has no name any more */

void removal_of_large(struct thread_pool *, int folder, uint64_t id, struct content_file *);
/* folder: large/, which stays open. The file, or NULL where it is not open. */

#endif
