/* life.h - what the folder of a queue knows of its place among the nodes, and what becomes of it when that is past.
 *
 *	SPOOL/node       life=0123456789abcdef epoch=7 beat=12 name=NODE
 *	                 and is=drained, or is=left: epoch.h, enum epoch_bond
 *	SPOOL/node.past  the queue in this folder is another node's by now: the next start puts it aside
 *	SPOOL/had-NODE   the epoch of that node by which its queue was adopted here, last
 *	SPOOL/adopted/   what was put aside, a folder each, for whoever wants to look
 *
 * A life is a random number that a folder keeps until its queue has been adopted: so a queue that comes back is told
 * from an empty one that has taken its name.
 *
 * Older versions wrote no name.
 *
 * THREAD     life_put_aside(): main, before the queue is opened. The rest: any one.
 * ERRORS     False and errno, or a sentence in error.
 */
#ifndef REPLICA_LIFE_H
#define REPLICA_LIFE_H

#include "base/buf.h"
#include "replica/epoch.h"

#define LIFE_ADOPTED_FROM "adopted-from-" /* and the node's token */

bool life_read(const char *spool, struct epoch_own *); /* none yet: a new one, not written */
void life_begin(struct epoch_own *); /* a new one, of the same name; not written */
bool life_write(const char *spool, const struct epoch_own *);
bool life_end(const char *spool); /* it is past */

bool life_note_had(const char *spool, const char *node, uint64_t epoch);
bool life_had(const char *spool, const char *node, uint64_t epoch);
/* Its queue was adopted here by that epoch, and its mail is sent from then on: NATS may lose that it was. Also true when that
 * can't be read. */

bool life_put_aside(const char *spool, struct buf *error);
/* If it is past: the segments, the large contents and all that goes with them. Killed in the middle, it is
 * brought to its end by the next start. */

void life_keep(const char *spool, const char *name, const char *reason);
/* A folder below the queue's, made of what another node's stream held, is put aside too, and that is logged. */

bool life_each_leftover(const char *spool, void (*found)(void *owner, const char *name),
			void *owner);
void life_keep_leftovers(const char *spool, const char *reason);
/* All of these that are there. */

void life_remove(const char *spool, const char *name);
/* A folder below the queue's, with all in it, as far as it can be removed. */

#endif
