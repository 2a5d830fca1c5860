/* room.h - whether the disk takes new mail, and what people are told where it does not.
 *
 *	free bytes, the reserve --> low, full --+--> conditions, metrics, events: each when it changes
 *	commits that fail --------> failing ----+
 *
 * A disk that refuses for another reason than room is not full: who reads that it is looks for the wrong thing.
 * A queue that somebody has removed takes all that is written to it, and loses it at the stop: it is failing.
 *
 * OWNERSHIP  Embedded in struct spool.
 * THREAD     spool.
 * ERRORS     None: where free space can't be asked for, what was known of it stays.
 */
#ifndef SPOOL_ROOM_H
#define SPOOL_ROOM_H

#include <stdbool.h>
#include <stdint.h>

struct spool;

struct room {
	bool low;	   /* less than queue_minfree */
	bool linked, gone; /* was log/ in a folder, and is it no more? */
	int64_t free;	   /* bytes, as seen then; -1: that can't be asked for */
	int64_t looked_ms; /* steady clock: when that was last looked at; 0: never */
	int full, failing; /* as told last: 0, or the errno of it */
	int commits_failed; /* errno of the last attempt to get a working segment; 0: it did not fail */
};

void room_measure(struct spool *); /* look at the free space: before there are segments, too */
void room_look(struct spool *);	   /* the same, if it is time */
bool room_for_mail(const struct spool *);
/* New mail may be stored: there is enough, and nothing fails. */

void room_tell(struct spool *); /* what has changed since the last call */

#endif
