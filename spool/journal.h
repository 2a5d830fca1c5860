/* journal.h - the log: lanes of segments, each appended to at the end of its last.
 *
 *	journal_add() journal_add() ... journal_write()   one write a lane
 *	journal_sync()                                    one sync a lane that was written to
 *	journal_collect()                                 what nothing needs goes
 *
 * A record never lies across two segments: when one is full, it is closed (written, synced, with
 * RECORD_END as its last record) before the next is written to.
 *
 * A segment has the size that is set, or a share of the room that the disk has, if that is less (0221). Where even the smallest
 * can't be made, a reserve, which is kept allocated, becomes one, if the caller allows it, so that what has been delivered can be
 * recorded on a disk that is full.
 *
 * OWNERSHIP  Embedded in struct spool; owns the segments. What journal_add() borrows must stay
 *            until the next journal_write().
 * THREAD     spool.
 * STATES     A lane has a current segment or none, also after journal_abandon().
 * ERRORS     False with errno. The caller then calls journal_abandon(): what has not been synced is
 *            cut off, and neither that segment nor its tail is trusted again.
 */
#ifndef SPOOL_JOURNAL_H
#define SPOOL_JOURNAL_H

#include "base/thread_pool.h"
#include "spool/lane.h"
#include "spool/replicate.h"
#include "spool/spare.h"

#define JOURNAL_RESERVE "reserve"

/* The next segment of LANE_MAIN, as it is to be made. */
struct journal_plan {
	uint64_t seq, size;
	char spare[SPARE_NAME]; /* of which; "": of a new file */
};

struct journal {
	int folder; /* log/ */
	uint64_t next_seq;
	struct list segments;
	struct list older; /* of earlier starts: recovery's until journal_join() */
	struct lane lane[LANES];
	struct spares spares; /* for LANE_MAIN */
	int64_t room; /* bytes that may be used, as told last, less what was made since; INT64_MAX: not known */
	bool planned;	    /* the next one is being made elsewhere: the spares are not touched */
	int64_t planned_ms; /* steady clock: since then; */
	bool unmade;	    /* but it could not be made */
	bool removing; /* the checkpoint says of some segments that they go, and they do, one a turn */
	bool reserve;	       /* it is there */
	bool reserve_allowed;  /* to be used up */
	int64_t reserve_tried; /* steady clock: when it was last to be made again */
	int reserve_error;     /* errno of that, or of the segment that it had to become */
	uint64_t
		renew_above; /* bytes; segments that have more are to be closed. UINT64_MAX: none is */
	bool closed;	     /* segments have been, in the batch that is under way */
	bool emptied;	     /* some segment may be needed by nothing */
	bool changed;	     /* the checkpoint does not know of all segments */
	bool written;	     /* something, since the last checkpoint */
	bool stuck;	     /* marking, or the last recovery, has failed: nothing goes any more */
	int64_t checkpoint_ms;	      /* steady clock: when it was last written */
	struct loop *keeper;	      /* of a copy elsewhere: replicate.h; or NULL */
	struct thread_pool *removers; /* removal.h; or NULL */
};

void journal_init(struct journal *, uint64_t segment_size);
void journal_fini(struct journal *);

bool journal_fresh(struct journal *); /* have a segment for LANE_MAIN, if there is none */
void journal_prepare(struct journal *, int64_t now_ms);
/* Make the next one, and the reserve, if it is time. now_ms: steady clock. */

bool journal_plan_next(struct journal *, int64_t now_ms, struct journal_plan *);
/* Time has come to make the next segment, and nobody does: it is planned now, and journal_planned() is to follow. After one
 * that could not be made, not before a second has passed. */

struct segment *journal_make_planned(int folder, const struct journal_plan *);
/* Any thread. folder: log/, by a descriptor of the caller's own. */

void journal_planned(struct journal *, const struct journal_plan *, struct segment *);
/* Takes the segment; NULL: it could not be made, and is made now. */

void journal_room(struct journal *, int64_t bytes);
/* So much of the disk is free, beyond what is to stay free: where it is little, nothing is kept for later, and segments are
 * smaller, so that what is only allocated refuses no mail. */

bool journal_lacks_room(const struct journal *);
/* There is none for a reserve: so a quota is found, too, which no system call tells. */

int64_t journal_usable_room(const struct journal *);
/* Bytes that segments may take, as far as is known. */

int journal_reserve_error(const struct journal *);
/* Why there is no reserve: ENOSPC where the disk is full. 0: there is one. */

bool journal_add(struct journal *, uint32_t lane, const struct record *what, const void *payload,
		 bool borrow, struct place *);
/* what: type, id and length. Whoever needs it to stay calls segment_hold(). A lane for which there is
 * no room on the disk is LANE_MAIN. */

bool journal_renew(struct journal *);
/* Close those that have more than renew_above, so that they can go, and want nothing of it any more. Before the first
 * journal_add() of a batch. */

bool journal_write(struct journal *);
bool journal_sync(struct journal *);
void journal_abandon(struct journal *);
bool journal_say_synced(struct journal *);
/* Write how far each lane has been synced, if it does not say so itself. True: there was such a one. */

void journal_let_go(struct journal *, const struct place *, enum segment_use);
/* One thing less needs it. No segment is allowed. */

void journal_join(struct journal *); /* what the older segments hold is known now */

void journal_collect(struct journal *, int64_t now_ms);
/* Remove the segments that nothing needs, and write the checkpoint when it is time. To be called
 * after a sync, when what made them so is on stable storage. Each call does one of these: it writes the checkpoint, or
 * removes one segment that this has named, so that commits come between. */

uint64_t journal_open_bytes(const struct journal *, uint64_t *live_bytes);
/* The same of those that are written to: up to where they are filled. */

bool journal_open_segment(const struct journal *, const struct segment *);
/* The segment is some lane's current or next. */

uint64_t journal_bytes(const struct journal *, uint64_t *live_bytes); /* of closed segments */

#endif
