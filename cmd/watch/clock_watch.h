/* clock_watch.h - keeps the queue's time when somebody changes the system's clock.
 *
 *	once a second: system's clock - queue's clock
 *	    a minute at most	the queue's follows: time servers put clocks right by that much
 *	    more		it goes on by the time that has passed, machine asleep or not, until the
 *				system's comes back to it or the queue is empty; logged
 *
 * So a wrong date makes no message too old, none due at once, and none sleep for days; nor does a
 * right one after a wrong one.
 *
 *	SPOOL/clock	"TIME UP BOOT DATE": the queue's clock, milliseconds since the boot, and which;
 *			the system's clock
 *
 * A start in the same boot goes on from there. After another boot what the system's clock has gone on since
 * has passed; if it has gone back, the later of the two clocks counts. Written once a minute, and at the stop.
 *
 * OWNERSHIP  The server's.
 * THREAD     Main.
 * ERRORS     A file that can't be read or written: the system's clock counts at a start.
 */
#ifndef CMD_WATCH_CLOCK_WATCH_H
#define CMD_WATCH_CLOCK_WATCH_H

#include "base/loop.h"

struct clock_watch;

struct clock_watch *clock_watch_new(struct loop *, const char *spool);
/* From now on clock_wall_ms() is the queue's. Before anything is read from the queue. */

void clock_watch_read(const char *spool);
/* For a command that reads the queue by itself: clock_wall_ms() is the queue's, as a start would have it now. Nothing is
 * written, nor logged. */

void clock_watch_start(struct clock_watch *);
void clock_watch_free(struct clock_watch **); /* writes the file */

#endif
