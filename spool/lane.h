/* lane.h - the end of one row of segments, to which records are appended.
 *
 * There is one lane for new mail and all that is recorded of it (LANE_MAIN), and one for each
 * interval of retries: what was put off for about as long comes due at about the same time, and its
 * segment is garbage soon after, whole. A lane more for what is held.
 *
 *	lane_add() lane_add() ... lane_write()   one write
 *
 * OWNERSHIP  Embedded in the journal, which owns the segments. What lane_add() borrows must stay
 *            until the next lane_write().
 * THREAD     spool.
 * STATES     current is NULL until the journal gives it one.
 * ERRORS     False with errno.
 * SEE        FINCH 2007, log-structured queue: "multiple queues".
 */
#ifndef SPOOL_LANE_H
#define SPOOL_LANE_H

#include "spool/segment.h"

enum { LANE_MAIN, LANE_DEFERRED, LANE_HOLD = 7, LANES }; /* the numbers are on disk */

struct lane {
	uint32_t number;
	uint64_t segment_size;
	bool began; /* this start has made a segment for it */
	struct segment *current, *next;
	uint64_t added;	    /* bytes added since the last write */
	struct buf scratch; /* heads and small payloads of those */
	struct piece *piece;
	size_t npiece, piece_cap;
};

void lane_init(struct lane *, uint32_t number, uint64_t segment_size);
void lane_fini(struct lane *);

uint32_t lane_of_delay(int64_t delay_ms, int64_t minimal_backoff_ms);
/* Which lane a message belongs to that is due after so long. */

bool lane_has_room(const struct lane *, uint64_t bytes);
/* For a record of this size and what must follow it. A fresh segment has room for anything: what is
 * larger than a segment gets one for itself. */

void lane_add(struct lane *, const struct record *what, const void *payload, bool borrow,
	      struct place *);
/* There is room. */

bool lane_write(struct lane *);
void lane_drop(struct lane *); /* what was added and not written */

void lane_add_end(struct lane *); /* RECORD_END, when there is a current segment */
bool lane_add_synced(struct lane *);
/* RECORD_SYNCED, if what it has to say is new. False: it is not. */

#endif
