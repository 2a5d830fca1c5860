/* edges.h - clock, loops, threads and log of the spool, so that one thread drives them step by step.
 *
 *	edges_turn(loop)      what one wake-up of that loop would do
 *	edges_settle()        all loops, until none has anything left to do now
 *	edges_pass(ms)        time passes; timers expire at their time, one by one
 *	edges_threads(calls)  each thread that the spool has made goes on for so many disk calls
 *
 * The clock stands still but for edges_pass(). A thread of the spool (that of recovery) is a real
 * one, yet only one ever runs: the others wait for their turn, so a seed gives the same history
 * again. Whoever joins it lets it run to its end.
 *
 * THREAD     The test's.
 * SEE        The Makefile wraps pthread_create(), pthread_join() and sem_wait() for the linker.
 */
#ifndef TESTS_UNIT_SPOOL_EDGES_H
#define TESTS_UNIT_SPOOL_EDGES_H

#include "base/log.h"
#include "base/loop.h"

#include <stdbool.h>
#include <stdint.h>

void edges_begin(void); /* another history: the clock is set back, ids may come again */
void edges_stepped(
	bool); /* threads made from now on wait for edges_threads(); else they run at once */
bool edges_turn(struct loop *);
void edges_settle(void);
void edges_pass(int64_t ms);
void edges_took(int64_t ms); /* a call to the disk that is under way takes so long */
void edges_threads(int calls);
bool edges_threads_run(void); /* some thread has not come to its end */
void edges_disk_call(void);   /* memdisk calls it: a place where threads may change */

/* What is logged. NULL: nobody listens. Values that are NULL are left out as in the log. */
struct edges_line {
	enum log_level level;
	const char *event;
	int n;
	const char *key[16], *value[16];
};

void edges_listen(void (*heard)(void *owner, const struct edges_line *), void *owner);
const char *edges_value(const struct edges_line *, const char *key); /* or NULL */

#endif
