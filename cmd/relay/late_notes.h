/* late_notes.h - what comes from other nodes for a relay that has ended, and is looked at when it is freed.
 *
 * Whoever would carry it out has stopped. An order is carried out at the next start then: Redis has it, and nothing is
 * noted any more of what was carried out here.
 *
 * OWNERSHIP  The server's.
 * THREAD     Main.
 * ERRORS     None.
 * SEE        cluster/orders.h.
 */
#ifndef CMD_RELAY_LATE_NOTES_H
#define CMD_RELAY_LATE_NOTES_H

#include "base/mailbox.h"

#include <stdbool.h>

bool late_notes_take(struct note *);
/* True: it is freed. An order of ours that comes back otherwise says that it was not carried out. */

#endif
