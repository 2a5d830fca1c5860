/* segment.h - one file of the log.
 *
 * It counts what still needs it: envelopes that hold, content of messages that are in the queue,
 * the start and delivery records of messages being worked on. When nothing does, and it is not
 * written to any more, it can go. When only content does, recovery need not read it.
 *
 * It also remembers which of its envelopes hold no more and do not say so on disk yet: see
 * journal_collect(). When none holds any more it is spent, and says that of all of them at once.
 *
 * OWNERSHIP  The journal's; the descriptor is shared with contents read from it, so that the file
 *            may be removed while it is read.
 * THREAD     spool; those of earlier starts that of recovery, until it is done.
 * STATES     open (a lane's current, or next), closed; only a current one may be dirty.
 * ERRORS     NULL or false with errno.
 * SEE        spool/README.md, "Segments".
 */
#ifndef SPOOL_SEGMENT_H
#define SPOOL_SEGMENT_H

#include "base/buf.h"
#include "base/content.h"
#include "base/list.h"
#include "spool/record.h"

enum { SEGMENT_NAME = 24 };

struct segment {
	struct list link; /* in the journal, in order of seq */
	struct segment_head head;
	uint32_t seed; /* of the CRCs in it */
	struct content_file *file;
	uint64_t size;	 /* of the file */
	uint64_t end;	 /* where the next record goes */
	uint64_t synced; /* up to where it is on stable storage */
	uint64_t said;	 /* up to where it says so itself */
	uint64_t
		before; /* what synced was when it was closed in a batch that is under way; else 0 */
	bool dirty;	/* written to since the last sync */
	bool passed_over; /* recovery has not read it: it holds content only */
	bool spent;	  /* no envelope in it counts any more, */
	bool says_spent;  /* and it says so itself, on stable storage */
	bool goes;	  /* the checkpoint says so, and it is not needed any more */
	bool gone;    /* it was being removed when the last start ended: there is nothing in it */
	bool to_seal; /* recovery: nobody has said where it ends */
	bool busy;    /* it is being read: it may not go */
	bool unkept;  /* what is wrong in it could not be put aside: it stays */
	int64_t stubborn_ms; /* steady clock: compaction, which could not empty it, is to try again */
	uint32_t live;	     /* what needs it */
	uint32_t needed;     /* of that, what recovery must read */
	uint64_t live_bytes; /* of records */
	uint32_t *dead;	     /* offsets of envelopes to be marked */
	size_t ndead, dead_cap;
};

/* Where a record lies. */
struct place {
	struct segment *segment; /* NULL: nowhere */
	uint32_t offset;
	uint32_t size; /* bytes of the record, its head and padding counted in */
};

enum segment_use { USE_CONTENT, USE_ENVELOPE, USE_WORK };

const char *segment_name(uint64_t seq, char name[SEGMENT_NAME]);
bool segment_name_parse(const char *name, uint64_t *seq);
/* False: it is none. No queue comes to SEGMENT_SEQ_MOST, and behind such a file there would be no numbers left. */

#define SEGMENT_SEQ_MOST (UINT64_MAX >> 1)

struct segment *segment_create(int folder, uint64_t seq, uint64_t size, uint32_t lane, bool first);
/* A new file of this size, on stable storage with its head and its name. */

struct segment *segment_adopt(int folder, const char *name, uint64_t seq, uint32_t lane,
			      bool first);
/* The same of a file that is there, with the room that it has, whatever lies in it. */

bool segment_seal(struct segment *, uint64_t offset);
/* The segment ends there, whatever follows: say so on disk, synced, and give back the room behind. */

bool segment_fill(struct segment *, uint64_t from, uint64_t to);
/* Make one right record that says nothing of bytes that are known to be wrong. Not synced. */

struct segment *segment_open(int folder, uint64_t seq, int flags, int64_t *changed_ms);
/* A file that is there; flags: O_RDWR, or O_RDONLY to look only. NULL and EBADMSG: neither of its
 * heads is right. */

bool segment_heads_agree(const struct segment *);
/* Both of its heads are right. */

void segment_free(struct segment **);

bool segment_read(const struct segment *, uint64_t offset, struct record *, struct buf *payload);
/* The record there, its payload in place of what the buf held. EBADMSG: damaged. */

void segment_hold(const struct place *, enum segment_use);
/* One more thing needs its segment. Back with journal_let_go(). No segment: nothing. */

bool segment_release(const struct place *, enum segment_use);
/* True when nothing needs the segment any more. */

void segment_dead(const struct place *);
/* The envelope there holds no more. */

bool segment_mark(struct segment *);
/* Say so on disk, for all that were named; synced when it returns. */

bool segment_spend(struct segment *);
/* No envelope in it holds any more, named or not: say so on disk, in two bytes; synced when it returns. */

#endif
