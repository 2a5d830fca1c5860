/* checkpoint.h - the restart positions: which segments there are, and which of them a start must read.
 *
 *	sluice checkpoint 2
 *	0000000000000007.seg skip
 *	0000000000000008.seg gone
 *	0000000000000009.seg read
 *	crc 0c5d1e2f
 *
 * What is not named is read. What is to be skipped holds content and garbage only, and whatever it
 * says of envelopes elsewhere they say themselves, by their garbage flag: the working suffix, and the
 * lanes, are what is left. It says the same of its own (segment_spend()), so that who reads all of the log, and
 * has no checkpoint, finds no message that is done. A name without a file is a segment that was lost,
 * unless it was to go: then it is skipped while it is there.
 *
 * OWNERSHIP  checkpoint_read() gives rows, freed with free().
 * THREAD     checkpoint_read(): main. The rest: spool.
 * ERRORS     Without a checkpoint, or where it can't be read, everything is.
 * SEE        FINCH 2007, log-structured queue: "restart positions", "working suffix".
 */
#ifndef SPOOL_CHECKPOINT_H
#define SPOOL_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct journal;
struct segment;

#define CHECKPOINT_NAME "checkpoint"
#define CHECKPOINT_NEW_NAME CHECKPOINT_NAME ".new" /* while it is written */

struct checkpoint_row {
	uint64_t seq;
	bool skip;
	bool gone; /* no wonder if it is not there */
};

bool checkpoint_read(int folder, struct checkpoint_row **, size_t *n);
/* None is right as well. False: it is damaged. */

void checkpoint_judge(const struct checkpoint_row *, size_t n, struct segment *);
/* Its row of a segment that is there: whether a start passes over it, whether any envelope in it counts. */

bool checkpoint_text(int folder, struct buf *);
/* The bytes of the file, right or not; none: nothing, and true. */

bool checkpoint_open_text(
	struct buf *); /* more rows are to follow; false: it is not right, or nothing */
void checkpoint_put_gone(struct buf *, uint64_t seq);
void checkpoint_close_text(struct buf *);
/* Of those that are not there any more here, and may be where the text is for: in any order, also what has a row. */

bool checkpoint_write(struct journal *);
/* Mark what must be marked, and name the segments that are needed. False and errno: the old one may
 * still be there. */

bool checkpoint_drop(struct journal *);
/* Where it can't be written, segments go all the same, since that makes room: all is marked, and the old one, which would miss
 * them, is removed first. False: nothing may go. */

#endif
