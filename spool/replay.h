/* replay.h - the state of each message that follows from all of its records.
 *
 *	content          where it lies, if it is whole
 *	envelope         known, unless one of a later generation is
 *	replacement      the same
 *	start            being worked on, if the envelope of that generation is the one that holds
 *	delivery         verdicts to be counted into the envelope of that generation
 *	finish           gone, whatever else there is
 *	garbage flag     the envelope says nothing; that of a segment: none in it does
 *
 * The order in which the records come does not matter: lanes are read one after the other, and what
 * was compacted lies behind what is newer. In version 1 of the format, which knows no generations,
 * there is one lane, and they are counted as the envelopes come.
 *
 * OWNERSHIP  Embedded.
 * THREAD     Recovery's.
 * ERRORS     A record that makes no sense here says nothing: what it refers to is gone.
 */
#ifndef SPOOL_REPLAY_H
#define SPOOL_REPLAY_H

#include "spool/found.h"
#include "spool/scan.h"

struct replay {
	struct found found;
	uint64_t newest;	  /* id */
	struct segment **segment; /* the caller's, in order of their numbers */
	size_t nsegment;
};

void replay_record(struct replay *, struct segment *, const struct scan *);
void replay_end(struct stub *);
/* All has been read: what was recorded against an envelope that does not hold is forgotten. */

#endif
