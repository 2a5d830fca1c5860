/* requests.h - what the relay does for its operator: stats, reload, stop, restart, queue, dest, shape,
 * explain, user,
 * verify.
 *
 * THREAD     Main.
 * ERRORS     Said to the client; an unknown request is refused.
 */
#ifndef CMD_RELAY_REQUESTS_H
#define CMD_RELAY_REQUESTS_H

#include "cmd/control/control.h"

void requests_handle(void *server, struct request *);

void requests_receive(void *server, struct note *);
/* A note for the main loop: the answer of spool or qmgr to one of our commands, or what qmgr has
 * learnt, to be written to disk. */

#endif
