/* spool_look.h - reads a queue while no relay is running, and answers questions about it.
 *
 *	spool_look_new() -- each segment --> survey --> replay --> the index, as after a start
 *	SPOOL_COMMAND of LIST, SHOW, SHAPE --> [ thread "look" ] --> SPOOL_COMMAND
 *
 * Nothing on disk is changed, so that a copy of a queue can be read too, on a disk that takes no
 * writing. The queue's lock is held while it is read; what is sent afterwards is read from files that
 * are open by then, but for the contents of large messages. What was being worked on when the relay
 * ended counts as active; a message that a start would put aside as damaged is still there.
 *
 * OWNERSHIP  spool_look_free() stops the thread. A reference on the configuration is taken.
 * THREAD     Main; the loop's own answers.
 * ERRORS     NULL, and why in error: a relay has the queue, there is none, or it can't be read.
 * SEE        spool_check.h, which says what is wrong in a queue.
 */
#ifndef SPOOL_SPOOL_LOOK_H
#define SPOOL_SPOOL_LOOK_H

#include "spool/spool.h"

struct spool_look;

struct spool_look *spool_look_new(struct conf *, const char *folder, struct buf *error);
void spool_look_free(struct spool_look **);
struct loop *spool_look_loop(struct spool_look *); /* orders that change anything assert */

size_t spool_look_ids(const struct spool_look *, uint64_t after, uint64_t *id, size_t most);
/* The smallest ids that are larger; how many. Any thread: the index stays as it is. */

bool spool_look_unreadable(const struct spool_look *);
/* The disk did not give back all of the log: there may be more messages. */

struct content *spool_look_older(struct spool_look *, uint64_t id, uint64_t size);
/* Content that is not where its envelope says, from where it was before. NULL: it is nowhere. Any thread, one at a time. */

#endif
