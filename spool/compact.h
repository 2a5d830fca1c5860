/* compact.h - make room: what is needed of a segment that is mostly garbage moves to the end of the log.
 *
 *	too much garbage -> the segment with the least in it that is needed -> read it from its
 *	beginning; each message that it holds something of -> OP_COPY of the content, synced
 *	-> OP_MOVE of the envelope -> it is empty, and goes
 *
 * The log takes at most COMPACT_RATIO times what is live, and a few segments, or as much as is free, if that is less, whatever the
 * ages of the messages: while there is more, the segment with the least in it is at most half full, so that to
 * write so much makes room for twice of it.
 *
 * It runs when there is nothing else to write, a step at a time; when it falls behind, without a pause.
 * Messages being worked on move too: a destination may be slow for hours.
 *
 * OWNERSHIP  Embedded in struct spool.
 * THREAD     spool.
 * ERRORS     A move that can't be written is forgotten, and tried again later. What is found damaged
 *            is left where it is.
 */
#ifndef SPOOL_COMPACT_H
#define SPOOL_COMPACT_H

#include "spool/scan.h"
#include "spool/segment.h"

#include <stdint.h>

enum { COMPACT_RATIO = 2, COMPACT_SPARE = 2 /* segments */ };

struct spool;

struct moving {
	struct stub *stub;
	struct place copy; /* of its content; nowhere when that stays */
};

struct compact {
	struct segment *victim; /* being emptied, or NULL */
	struct scan scan;
	struct moving *moving; /* of this step */
	size_t n, cap;
	bool stale;		       /* something has been let go of since */
	int64_t next_ms;	       /* steady clock: when the next step may be made */
	int64_t looked_ms;	       /* when the sizes were last looked at */
	int64_t bytes, live;	       /* of the closed segments */
	int64_t told_bytes, told_live; /* of all, large contents too, as the metrics have them */
};

void compact_run(struct spool *);
int64_t
compact_delay_ms(const struct spool *); /* until the next step; -1: there is nothing to do */
void compact_fini(struct compact *);

bool compact_segment(struct spool *, struct segment *);
/* Empty this one, now. False: something needs it still. */

#endif
