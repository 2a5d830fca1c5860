/* thread.h - how each thread of the program begins.
 *
 *	thread_start() --> [ signals blocked, named, prepared ] --> run(argument)
 *
 * Signals are main's. What else every thread must do before anything of a peer's reaches it is set by
 * main with thread_prepare(): the program's sandbox takes rights from it that main needs.
 *
 * OWNERSHIP  Whoever has started a thread joins it.
 * THREAD     thread_prepare(): main, before there is any other. thread_start(): any.
 * ERRORS     thread_start() returns an error number, as pthread_create(3) does; 0: it runs.
 */
#ifndef BASE_THREAD_H
#define BASE_THREAD_H

#include <pthread.h>
#include <stdint.h>

int thread_start(pthread_t *, const char *name, void *(*run)(void *), void *argument);
/* name: at most 15 characters, and must stay. */

void thread_need(pthread_t *, const char *name, void *(*run)(void *), void *argument);
/* The same for one that the program can't be without: where there is none, it says what may be in the way, and ends. */

int thread_workers(int64_t wanted); /* so many; 0: one for each processor that is online */

enum { THREAD_NICENESS = 10 }; /* the sandbox lets a thread have this, and no other */

void thread_give_way(void);
/* The calling thread gets a processor when those that carry mail want none: it computes for long. */

void thread_prepare(void (*prepare)(void));
/* Called first in each thread that is started from now on; NULL: nothing is. */

#endif
