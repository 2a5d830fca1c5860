/* gather.h - how long a commit waits for company.
 *
 * A commit costs the same for one message as for many: the sync, and a wake-up of every thread, which
 * costs more when the processors are busy. But a message that waits for others is answered later. So no
 * message waits longer than a few commits take, as measured lately, and only for clients that will come sooner:
 *
 *	clients in the middle of a message, at the rate at which messages come; once that is so large that it
 *	goes to a file, nobody waits for it any more
 *	clients of the last commit, which have their reply, if they usually come back within the time of
 *	a commit; otherwise two groups of clients would wait for each other's commits for ever
 *
 * Records that nobody waits for may wait long, so that they cost the disk little.
 *
 * Numbers in, numbers out: no clock, no I/O. Microseconds of the steady clock.
 *
 * OWNERSHIP  Embedded in struct spool.
 * THREAD     spool.
 * ERRORS     None.
 */
#ifndef SPOOL_GATHER_H
#define SPOOL_GATHER_H

#include <stdbool.h>
#include <stdint.h>

struct gather {
	int64_t commit_us; /* what one takes, of late */
	int64_t waking_us; /* from a message's coming until this thread sees it: long on a busy machine */
	int64_t gap_us;	      /* between two messages, of late */
	int64_t back_us;      /* from a client's answer to its next message, of late */
	int64_t committed_us; /* when the last commit began, */
	int64_t counted_us;   /* and the last with messages, */
	int64_t answered_us;  /* and when that one was answered */
	int64_t began_us;     /* when the first message was taken that waits now */
	int stores;	      /* messages that wait, and clients with them */
	int large;	      /* of these, that were long in coming: so are their clients' next */
	int absent;	      /* clients of the last commit that have not come back */
};

void gather_init(struct gather *, int64_t now_us);

void gather_came(struct gather *, int64_t now_us, int64_t posted_us, int64_t answered_us,
		 bool large);
/* A message. posted_us: when its client had brought it; answered_us: when that client's message
 * before was answered, or 0. large: nobody has waited for it, or does for that client's next. */

int64_t gather_wait_us(const struct gather *, int64_t now_us, int under_way);
/* How long to wait from now, of what has come at least one thing; 0: not at all. under_way: messages
 * that clients are in the middle of. */

int gather_awaited(const struct gather *, int under_way);
/* For how many messages, at least 1. */

void gather_commit(struct gather *, int64_t now_us);		      /* one begins now */
void gather_synced(struct gather *, int64_t now_us, int64_t took_us); /* it took so long */

#endif
