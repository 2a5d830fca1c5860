/* asker.h - who has asked the spool or the scheduler, when several kinds of askers share a loop.
 *
 * The owner of such a note is an asker, the first member of what is waiting for it.
 *
 * OWNERSHIP  answer() takes the note.
 * THREAD     The loop's that is named in the note.
 */
#ifndef CMD_HTTP_ASKER_H
#define CMD_HTTP_ASKER_H

#include "base/mailbox.h"

struct asker {
	void (*answer)(struct asker *, struct note *);
};

#endif
