/* memory_room.h - how much memory this process may have, and whether that is as much as its settings promise to mail.
 *
 * The least counts: of the groups of processes that it is in (cgroups, both versions), of its own limits (ulimit -v, -d), of the
 * machine. Who takes more is killed, or gets none.
 *
 * THREAD     Main. Before the sandbox, from which the groups can't be seen.
 * ERRORS     None: what can't be read limits nothing.
 */
#ifndef CMD_WATCH_MEMORY_ROOM_H
#define CMD_WATCH_MEMORY_ROOM_H

#include "base/conf.h"

struct memory_room {
	int64_t bytes;
	const char *whose; /* a constant */
};

struct memory_room memory_room_find(void);

void memory_room_of_groups(struct memory_room *, const char *groups, const char *mounted);
/* Of the groups in this text, as in /proc/self/cgroup, below this folder: what is less than there was. */

bool memory_room_lacks(const struct memory_room *, const struct conf *, struct buf *says);
/* More is promised than there is: in a sentence without its end. */

#endif
