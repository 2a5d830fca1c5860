/* ahead.h - the next segment is made apart from the spool's thread, before it is needed.
 *
 *	the current one is half full --> [ pool ]: head and name synced
 *	                                     |
 *	lane: its next segment <-------------+ SPOOL_NOTE_AHEAD
 *
 * A new name costs the disk several syncs of a commit, and all clients would wait for it. One that comes when the current one is full, and
 * another was made at once, is not needed any more.
 *
 * Meanwhile nothing else is made of a spare segment or becomes one, so that names do not meet.
 *
 * OWNERSHIP  The segment is the note's until it is taken.
 * THREAD     spool; the work is the pool's, with a descriptor of the folder of its own (large_sync.h).
 * ERRORS     Where it can't be made, the spool's thread tries what it has always tried: room, then the reserve.
 */
#ifndef SPOOL_AHEAD_H
#define SPOOL_AHEAD_H

struct note;
struct spool;

void ahead_run(struct spool *); /* ask for the next one if it is time */
void ahead_take(struct spool *, struct note *);
void ahead_drop(struct note *); /* the spool is closing */

#endif
