/* spare.h - segments that nothing needs any more, kept to become the next ones.
 *
 *	SEQ.seg -- spares_keep() --> spare0, spare1 -- spares_take() --> SEQ.seg, with a new head
 *
 * To write over what is there changes no metadata: the sync of a commit is one of data, and takes two thirds
 * of what it takes in a file just allocated. And the pages stay: to give back those of a segment keeps the
 * kernel busy for tens of milliseconds.
 *
 * What an earlier life has left in one is never right in a later (record.h), and stays until it is written
 * over.
 *
 * OWNERSHIP  Embedded in struct journal. No descriptor is held.
 * THREAD     spool.
 * ERRORS     One that can't be kept, or used, is not there: the caller does without.
 */
#ifndef SPOOL_SPARE_H
#define SPOOL_SPARE_H

#include "spool/segment.h"

enum { SPARES_MAX = 2, SPARE_NAME = 16 };

struct spares {
	int folder;    /* log/ */
	uint64_t size; /* bytes of each */
	unsigned n;
	bool unwanted; /* the disk has no room for them: none is kept */
};

bool spare_name(const char *); /* whether it is one's */

void spares_find(struct spares *, int folder, uint64_t size);
/* Those that are there; any other file with such a name is removed. */

bool spares_keep(struct spares *, const struct segment *);
/* Nothing needs it. True: it has another name from now on, on stable storage. */

const char *spares_claim(struct spares *, char name[SPARE_NAME]);
/* One of them is the caller's from now on, under this name; NULL: there is none. */

struct segment *spares_take(struct spares *, uint64_t seq, uint32_t lane, bool first);
/* One of them, made anew by segment_adopt(); NULL: none. */

void spares_drop(struct spares *); /* remove them */

#endif
