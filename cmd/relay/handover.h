/* handover.h - restarts: executes the new program in the same process, with the listening sockets.
 *
 * Before that, while the relay serves, the program is tried: as "serve --try" it says whether it would start. The relay
 * has ended when it is executed, and could not come back from one that can't run.
 *
 * The sockets are passed as systemd passes them: from descriptor 3 on, with LISTEN_PID and
 * LISTEN_FDS. The process keeps its id, so that whoever watches it sees no end.
 *
 * THREAD     Main, when no other is left.
 * ERRORS     handover_exec() returns only when neither the program can be run nor the one that ran until now; it has
 *            said why on stderr.
 * SEE        sd_listen_fds(3).
 */
#ifndef CMD_RELAY_HANDOVER_H
#define CMD_RELAY_HANDOVER_H

#include "base/buf.h"
#include "cmd/relay/trial.h"

#include <stdbool.h>

void handover_prepare(char **argv);
/* At the start: remember where the program is. It may be replaced by another of that name. argv: from the name of the subcommand
 * on; must stay. */

bool handover_possible(struct buf *says);
/* Is there a program of that name, and can it be run from here? */

bool handover_try(struct trial *);
/* Begin to try it. False and errno: no process can be had, and what cannot be tried is executed as it is. */

bool handover_passed(struct trial *, struct buf *says);
/* That is over. */

bool handover_is_what_was_tried(void);
/* False: another has its name since. handover_exec() executes the one that ran until now then. */

void handover_exec(const int *fd, int n);

#endif
