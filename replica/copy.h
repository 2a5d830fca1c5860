/* copy.h - a file of the queue, and how much of it the stream has.
 *
 *	0 ..... acked ..... sent ..... end
 *	       | under way | missing  |
 *
 * A segment's end moves on. A large file has one unit more than it has bytes: the message that says that
 * this is all. A segment that was cut ends with a record that its file need not have.
 *
 * OWNERSHIP  Those of one struct copies are its own.
 * THREAD     replica.
 * New mail's segments are sent as far as they are cleared: copies_clear().
 *
 * STATES     behind while acked < end, and missing while sent < end: lists, in which new mail's large files
 *            stand before segments, and both before what was there at the start.
 * ERRORS     None.
 */
#ifndef REPLICA_COPY_H
#define REPLICA_COPY_H

#include "base/content.h"
#include "base/keyed_hash.h"
#include "base/list.h"
#include "spool/record.h"

#include <stdbool.h>
#include <stdint.h>

struct copy_key {
	uint64_t of;
	uint64_t large; /* 1 or 0 */
};

enum copy_class { COPY_LARGE, COPY_LOG, COPY_OLDER, COPY_CLASSES };

struct copy {
	UT_hash_handle hh;
	struct copy_key key;
	struct list behind, missing;
	enum copy_class class;
	struct content_file *file; /* of a segment */
	int fd;			   /* of a large file being read; or -1 */
	uint64_t end, sent, acked;
	uint64_t cleared; /* of COPY_LOG: so far it may be sent, */
	uint64_t waiting; /* and so far when the large content is there that it waits for */
	uint64_t cut;	  /* of a segment: what lies here is not what its file has, but */
	uint8_t ending[RECORD_HEAD]; /* ... this, which is the end of it; 0: it was not cut */
	int under_way;		     /* messages */
	bool gone;		     /* it is to be purged */
	bool there;		     /* something of it was sent */
	bool purging; /* what had its name before is being purged: nothing is sent until that is done */
};

/* How far all files had got at some time: reached when the stream has all of that. */
struct goals {
	struct goal {
		struct copy_key key;
		uint64_t end;
	} * of;
	size_t n;
};

struct copies {
	struct copy *table;
	struct list behind[COPY_CLASSES], missing[COPY_CLASSES];
	int64_t lag[COPY_CLASSES]; /* bytes */
	struct goals rush;	   /* of the log, the newest last, which is sent first */
};

void copies_init(struct copies *);
void copies_fini(struct copies *);

struct copy *copies_add(struct copies *, struct copy_key, enum copy_class); /* none has that key */
struct copy *copies_find(struct copies *, uint64_t of, bool large);	    /* or NULL */
void copies_remove(struct copies *, struct copy *);

void copy_is(struct copies *, struct copy *, uint64_t end, uint64_t sent, uint64_t acked);
/* The one function that moves it. */

void copy_cut(struct copies *, struct copy *, uint64_t at);
/* A segment: what lies behind is withdrawn, and its ending comes there; that, and what was under way, is missing. */

void copy_gone(struct copies *, struct copy *); /* nothing of it is missing any more */

void copy_purged(struct copies *, struct copy *); /* what had its name before: it may be sent */

void copies_rush(struct copies *);
/* The log as it is now comes in from its newest file to its oldest: it says that something is withdrawn whose content never came. */

void copies_last(struct copies *, struct copy *); /* of its class it is to be sent last */

void copies_again(struct copies *, bool all);
/* Units under way are missing; all: what has been acknowledged, too. */

struct copy *copies_missing(struct copies *, bool older); /* what may be sent next, or NULL */

bool copies_clear(struct copies *);
/* The units that were waiting are cleared; those of the log as it is now wait. False: nothing does. */

int64_t copies_lag(const struct copies *);

void goals_set(struct goals *, const struct copies *, enum copy_class below);
/* Of the classes below that one. */
bool goals_reached(struct goals *, struct copies *);
void goals_fini(struct goals *);

#endif
