/* parked.h - counts the deferred messages of each site, and makes those due that wait for it.
 *
 *	SPOOL_RELEASE --> kept, then counted for its site ----> due by its time, or flushed, or gone
 *	SPOOL_UNPARK ---> waits for the next commit ----------> the oldest are due; the answer
 *
 * The site of a message, and whether it waits for it, lie in its stub, in memory only. The counts
 * stand beside, so that a question costs nothing. An order looks for the oldest from where the last
 * one for that site has ended, so that many small ones cost no more than one for all.
 *
 * OWNERSHIP  Owns its array, and orders until they are answered.
 * THREAD     spool.
 * ERRORS     None; misuse asserts.
 * SEE        spool.h, struct spool_release and struct spool_unpark.
 */
#ifndef SPOOL_PARKED_H
#define SPOOL_PARKED_H

#include "base/note_queue.h"
#include "spool/stub.h"

struct parked {
	struct parked_site *site; /* by number, up to the highest that was ever named */
	uint32_t nsite;
	struct note_queue orders; /* not answered yet */
};

void parked_init(struct parked *);
void parked_fini(struct parked *);

void parked_enter(struct parked *, struct stub *, uint16_t site, bool parked);
/* The message has just been deferred, and is mail of this site. Nothing for site 0. */

void parked_end(struct parked *, struct stub *);
/* The message waits for its site no longer, if it did; it is still deferred, and still mail of that site. */

void parked_leave(struct parked *, struct stub *); /* it is deferred no longer */

void parked_order(struct parked *, struct spool_unpark *);
void parked_run(struct spool *);
/* Fulfil and answer all orders. What was posted before them must have been written, or else messages
 * just released would be missing from the answers. */

#endif
