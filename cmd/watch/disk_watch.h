/* disk_watch.h - a disk that does not answer, neither with an error nor otherwise, is a condition.
 *
 *	once a second: the same turn of the spool still runs, ten times in a row --> disk_stands, until it ends
 *
 * Looks are counted, and not the time: while the whole process was stopped the disk did nothing wrong.
 *
 * OWNERSHIP  The server's. The spool outlives it.
 * THREAD     disk_watch_new(), disk_watch_free(): main, while the loop does not run. The rest is that of a loop that never
 *            touches this disk, as main does.
 * ERRORS     None.
 */
#ifndef CMD_WATCH_DISK_WATCH_H
#define CMD_WATCH_DISK_WATCH_H

#include "base/loop.h"

struct disk_watch;
struct spool;

struct disk_watch *disk_watch_new(struct loop *, const struct spool *);
void disk_watch_free(struct disk_watch **);

#endif
