/* adoption.h - messages of another node, taken into this queue before they are this node's.
 *
 *	SPOOL/adopting   the ids of what is being taken, one a line, in any order
 *
 *	adoption_note()  -> SPOOL_STORE, adopted -> STUB_ADOPTED  ...  -> SPOOL_ADOPTED -> worked on
 *	  synced             kept, and nobody's yet                  all of them at once
 *
 *	                                           ...  -> SPOOL_DISOWN  -> gone, and nobody has worked on it
 *
 * A node that takes up the queue of a dead one can die in the middle, and its own queue be taken up by a third.
 * Then the third reads some messages twice: in the dead node's copy, and in this one's. That does no harm as
 * long as nobody has worked on them. So none is worked on before the cluster knows that all of them are this
 * node's; until then they are STUB_ADOPTED, also after a restart: the file says which. It is written before the
 * messages are, and removed when they are released.
 *
 * OWNERSHIP  The list is the caller's, adoption_fini() ends it.
 * THREAD     adoption_note(), adoption_is_noted(), adoption_end(): any one. The rest: spool, or recovery.
 * ERRORS     As said.
 * SEE        replica/node.h for who says when; given_back.h for what was disowned and comes again.
 */
#ifndef SPOOL_ADOPTION_H
#define SPOOL_ADOPTION_H

#include "base/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct adoption {
	uint64_t *id; /* sorted */
	size_t n;
	bool all; /* the file can't be read: then it may name any */
};

bool adoption_note(int folder, const uint64_t *id, size_t n);
/* Add them to the file, synced. False and errno: they must not be stored. */

bool adoption_is_noted(int folder); /* there is such a file: what it names is not released */

bool adoption_read(struct adoption *,
		   int folder); /* false and errno: all; no file is an empty list */
bool adoption_has(const struct adoption *, uint64_t id);
void adoption_fini(struct adoption *);

int adoption_end(int folder); /* remove the file, synced; 0, or an errno */

struct spool;
void adoption_release(
	struct spool *); /* spool: all that is STUB_ADOPTED is this node's from now on */

/* SPOOL_DISOWN, both ways. */
struct spool_disown {
	struct note note;
	struct loop *reply_to;
	bool done; /* the answer: none of it will be there after a crash */
};

void adoption_disown(struct spool *, struct spool_disown *);
/* spool: of all that is STUB_ADOPTED what the file names goes, synced; the rest is this node's, and is worked on. Not done: the disk
 * fails, the file can't be read, large content is being synced, or recovery has not ended; ask again. */

#endif
