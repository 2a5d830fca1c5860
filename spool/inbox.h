/* inbox.h - the notes that other threads have posted to the spool.
 *
 * A note becomes an op of the next commit, an order of the operator, or more credit; once the spool is
 * closing, it is dropped with all that hangs on it.
 *
 * OWNERSHIP  Takes the notes.
 * THREAD     spool, but for what is posted.
 */
#ifndef SPOOL_INBOX_H
#define SPOOL_INBOX_H

#include "spool/spool_core.h"

#include <semaphore.h>

struct spool_stop { /* SPOOL_NOTE_STOP */
	struct note note;
	sem_t done;
	bool settles; /* spool_settle(): it goes on */
};

void inbox_receive(void *spool, struct note *);

#endif
