/* given_back.h - messages of another node that were taken, given back, and may be taken once more.
 *
 * A finish record ends a message whatever else the log says of it, in whatever order lanes are read. One that was given
 * back may come again, under the same id, into the same log: its finish names the highest generation that it
 * ends, and the next first envelope is of one more (replay.h). So the spool keeps that number of each, as long as it runs, and a
 * start reads it again from the records that are left.
 *
 * A million of them take 16 MB.
 *
 * OWNERSHIP  Embedded; all zero is empty. given_back_fini() ends it.
 * THREAD     One.
 * ERRORS     None.
 * SEE        adoption.h for who gives back.
 */
#ifndef SPOOL_GIVEN_BACK_H
#define SPOOL_GIVEN_BACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct given_back_one {
	uint64_t id;
	uint32_t generation; /* the highest that a finish has ended */
};

struct given_back {
	struct given_back_one *of;
	size_t n, room;
	bool unsorted;
};

void given_back_add(struct given_back *, uint64_t id, uint32_t generation);
void given_back_join(struct given_back *,
		     struct given_back *from); /* all of it; that is empty then */

uint32_t given_back_generation(struct given_back *, uint64_t id);
/* The highest that was ended; 0: it was not here before. */

void given_back_fini(struct given_back *);

#endif
