/* replicate.h - says to whoever keeps a copy of the queue elsewhere what becomes of its files.
 *
 *	spool -- REPLICATE_SEGMENT, _WRITTEN, _CUT, _MARKED, _CHECKPOINT, _GONE, _LARGE,
 *	      _LARGE_GONE ------------------------------------------------------------> keeper
 *	      -- REPLICATE_KNOWN: all that was there before this start has been named ----->
 *	      -- REPLICATE_ASK: a barrier -------------------------------------------------->
 *	      -- REPLICATE_STARTS_WAIT: the answer to an _AWAY that does not say alone ---->
 *	      <- SPOOL_REPLICATED: all that was said before that barrier is there -----------
 *	      <- SPOOL_REPLICA_AWAY: it is not, and was not for too long; or is again ------
 *
 * The keeper reads the bytes from the files, so that nothing is copied here, and what could not be sent for
 * hours takes no memory. Without a keeper nothing is said, and nothing costs anything.
 *
 * OWNERSHIP  A note is given away, with the reference to the file in it.
 * THREAD     spool. replicate_to(): main, before the spool's thread runs.
 * ERRORS     None here: the keeper catches up when it can.
 */
#ifndef SPOOL_REPLICATE_H
#define SPOOL_REPLICATE_H

#include "base/buf.h"
#include "base/content.h"
#include "base/list.h"
#include "base/loop.h"
#include "base/note_queue.h"

#include <stdbool.h>
#include <stdint.h>

enum replicate_note {
	REPLICATE_SEGMENT = NOTES_FROM(NOTES_OF_REPLICATE),
	REPLICATE_WRITTEN,
	REPLICATE_CUT,
	REPLICATE_MARKED,
	REPLICATE_CHECKPOINT,
	REPLICATE_GONE,
	REPLICATE_LARGE,
	REPLICATE_LARGE_GONE,
	REPLICATE_KNOWN,
	REPLICATE_ASK,
	REPLICATE_STARTS_WAIT,
	SPOOL_REPLICATED,
	SPOOL_REPLICA_AWAY,
};

struct replicate {
	struct note note;
	uint64_t of; /* segment, id of a large file, or barrier; _AWAY: returned by the answer */
	struct content_file *file; /* SEGMENT: a reference */
	uint64_t end;		   /* SEGMENT, WRITTEN, CUT: where it ends; LARGE: its size */
	bool older;		   /* SEGMENT, LARGE: of a former start; it is in no hurry */
	bool away;		   /* SPOOL_REPLICA_AWAY, */
	bool alone;		   /* and messages are begun all the same */
	uint32_t n;
	uint8_t bytes
		[]; /* n of them. MARKED: offsets (4) of records that got RECORD_GARBAGE; KNOWN,
			  * CHECKPOINT: what is in log/checkpoint; CUT: what stands at the end, RECORD_END */
};

struct segment;
struct stub;
struct spool;
struct op;

/* Of struct spool. */
struct replication {
	struct loop *keeper;  /* NULL: there is none */
	bool waits;	      /* clients wait for it */
	bool degrade;	      /* ... but not while it is away */
	bool starts_wait;     /* so do messages that are to be worked on */
	bool away;	      /* it was not there for too long */
	bool alone;	      /* and starts wait no longer */
	uint64_t barrier;     /* the last that was given out */
	struct list awaiting; /* ops, in order of their barriers */
	int nawaiting;
	struct note_queue orders; /* of the operator, done; likewise */
};

void replicate_to(struct spool *, struct loop *keeper, bool waits, bool degrade);
void replicate_starts(struct spool *,
		      bool wait); /* main, likewise: what is said above of adoption */

/* keeper: NULL is allowed, and means that nobody listens. */
void replicate_segment(struct loop *keeper, const struct segment *, bool older);
void replicate_written(struct loop *keeper, const struct segment *);
void replicate_cut(struct loop *keeper, const struct segment *);
/* All behind its end is withdrawn. */

void replicate_marked(struct loop *keeper, const struct segment *); /* all that are named now */
void replicate_spent(struct loop *keeper, const struct segment *);
/* The row of segment_spend() about a segment, in the same form. */
void replicate_checkpoint(struct loop *keeper,
			  const struct buf *); /* before any _gone() that relies on it */
void replicate_gone(struct loop *keeper, uint64_t seq);
void replicate_large(struct loop *keeper, uint64_t id, uint64_t size, bool older);
void replicate_large_gone(struct loop *keeper, uint64_t id);
void replicate_known(struct spool *, struct stub *const *found, size_t n,
		     const struct buf *checkpoint);
/* Recovery has ended, and has found these; an id says nothing of what came before: clocks are set, and other nodes
 * have others. */

void replicate_ask(struct loop *keeper, uint64_t barrier);
void replicate_starts_wait(struct loop *keeper, uint64_t of); /* of: of the _AWAY that it answers */

#endif
