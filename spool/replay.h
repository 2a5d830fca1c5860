/* replay.h - the state of each message that follows from all of its records.
 *
 *	content          where it lies, if it is whole
 *	envelope         known, unless one of a later generation is
 *	replacement      the same
 *	start            being worked on, if the envelope of that generation is the one that holds
 *	delivery         verdicts to be counted into the envelope of that generation
 *	finish           gone, whatever else there is; and its partner, if it names that. If it names a generation, it is
 *	                 gone up to that one: it was given back to its node, and may have come again (given_back.h)
 *	garbage flag     the envelope says nothing; that of a segment: none in it does
 *
 * The order in which the records come does not matter: lanes are read one after the other, and what
 * was compacted lies behind what is newer. In version 1 of the format, which knows no generations,
 * there is one lane: the last envelope there holds, is of generation 1 if it was the message's first and else 2, and what was
 * recorded against any generation is about it, until there is one of version 2.
 *
 * OWNERSHIP  Embedded.
 * THREAD     Recovery's.
 * ERRORS     A record that makes no sense here says nothing: what it refers to is gone.
 */
#ifndef SPOOL_REPLAY_H
#define SPOOL_REPLAY_H

#include "spool/found.h"
#include "spool/scan.h"

/* Two messages of one batch, stored together or not at all. */
struct pair {
	uint64_t id, partner;
	bool torn; /* that one is not there */
};

struct replay {
	struct found found;
	struct pair *pair; /* those of batches that are not known to have been synced */
	size_t npair;
	uint64_t newest;	  /* id */
	struct segment **segment; /* the caller's, in order of their numbers */
	size_t nsegment;
};

void replay_record(struct replay *, struct segment *, const struct scan *);
void replay_said(struct replay *, const struct segment *);
/* The segment has been read, and up to where it was synced is known. */

void replay_end_all(struct replay *);
/* All has been read: of two that were stored together, and of which the power has taken one, there is none. The pairs stay. */

void replay_fini(struct replay *);

void replay_end(struct stub *);
/* All has been read: what was recorded against an envelope that does not hold is forgotten. */

bool replay_was_given_back(const struct stub *);
/* All has been read: there is nothing of it, up to its generation; what comes of it again must be of a later one. */

#endif
