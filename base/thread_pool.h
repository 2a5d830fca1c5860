/* thread_pool.h - a few threads for work that keeps a processor busy: password hashes, signatures.
 *
 *	a loop: thread_pool_give(job) --> [ queue, bounded ] --> a thread of the pool: work(job), done(job)
 *
 * Another pool is for calls that block: it syncs large files, and removes files.
 *
 * A loop must not compute for milliseconds. The threads of the pool do it instead, at a lower priority than
 * the loops if there are not enough processors. done() posts the result to whoever asked, in a note of the
 * job's. It is called once for each job that was taken, even if thread_pool_stop() came before its work.
 *
 * Mail does not wait behind passwords, however many are guessed: it has a queue of its own (decision 0200).
 *
 * Outside of the mail path the queue is behind a mutex, held to add or take one job.
 *
 * OWNERSHIP  A job that was taken is the pool's until done(), which gives it away. One that was not
 *            taken stays the caller's.
 * THREAD     thread_pool_give(): any. The rest: main.
 * ERRORS     A queue that is full takes no more: thread_pool_give() returns false. Threads that can't be
 *            made end the program.
 */
#ifndef BASE_THREAD_POOL_H
#define BASE_THREAD_POOL_H

#include <stdbool.h>

struct thread_pool;

enum { THREAD_POOL_IN_A_ROW = 16 };

/* The first member of what is to be done. */
struct thread_pool_job {
	struct thread_pool_job *next;
	void (*work)(struct thread_pool_job *); /* in a thread of the pool: no loop, no session */
	void (*done)(
		struct thread_pool_job *); /* there too, or in main's when it was never worked on */
	bool worked, counts;
	bool brief; /* takes a few milliseconds at most: its done() may wait for a few others like it */
};

struct thread_pool *thread_pool_new(const char *name, int threads, int queue_max);
/* name: of its threads, at most 15 characters, and must stay. queue_max: jobs that may wait, those at work
 * not counted. */

void thread_pool_give_way(struct thread_pool *);
/* Before the start: its threads compute, and have a lower priority than the loops. Those of a pool for calls that block
 * are waited for by mail. */

void thread_pool_start(struct thread_pool *); /* until then jobs wait */

bool thread_pool_give(struct thread_pool *, struct thread_pool_job *);

bool thread_pool_give_always(struct thread_pool *, struct thread_pool_job *);
/* Also when the queue is full: for jobs whose number is bounded by who waits for them. They don't count
 * there, and go before those that do, so many in a row while some of these wait. False: the pool has stopped. */

void thread_pool_stop(struct thread_pool *);
/* Jobs at work are finished; those that wait are done() without work. Then nothing more is taken. */

void thread_pool_free(struct thread_pool **); /* stops it first */

#endif
