/* handover.h - restarts: executes the new program in the same process, with the listening sockets.
 *
 * The sockets are passed as systemd passes them: from descriptor 3 on, with LISTEN_PID and
 * LISTEN_FDS. The process keeps its id, so that whoever watches it sees no end.
 *
 * THREAD     Main, when no other is left.
 * ERRORS     handover_exec() returns only when the program can't be run; it has said why on stderr.
 * SEE        sd_listen_fds(3).
 */
#ifndef CMD_RELAY_HANDOVER_H
#define CMD_RELAY_HANDOVER_H

#include "base/buf.h"

#include <stdbool.h>

void handover_prepare(void);
/* At the start: remember where the program is. It may be replaced by another of that name. */

bool handover_possible(struct buf *says);
/* Is there a program of that name, and can it be run from here? */

void handover_exec(const int *fd, int n, char **argv);
/* argv: from the name of the subcommand on. */

#endif
