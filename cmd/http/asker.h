/* asker.h - who has asked the spool or the scheduler, when several kinds of askers share a loop.
 *
 * The owner of such a note is an asker, the first member of what is waiting for it.
 *
 * OWNERSHIP  answer() takes the note.
 * THREAD     The loop's that is named in the note.
 */
#ifndef CMD_HTTP_ASKER_H
#define CMD_HTTP_ASKER_H

#include "base/magic.h"
#include "base/mailbox.h"

enum { ASKER_MAGIC = 0xa5ce0011 };

struct asker {
	unsigned magic;
	void (*answer)(struct asker *, struct note *);
};

#endif
