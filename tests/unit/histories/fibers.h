/* fibers.h - threads of several processes that take turns, under one clock that only waiting moves.
 *
 *	fiber_new() --> ready <--------- fiber_wait(ready, until) --> ends
 *	                  |                     ^
 *	                  +-- fibers_run() -----+   one of those that can go on, by chance
 *
 * One at a time runs, until it waits: so a seed gives the same history again. When none can go on, the clock
 * jumps to the next time that somebody waits for, or that an event has. Waits end late by up to fibers.slack_us, as
 * they do on a machine that is busy, so that what looks twenty times a second costs less.
 *
 * A process is a number. One that is paused does not run, and what happens to it waits; of one that is killed
 * no fiber ever runs again, and what they had allocated stays with the program.
 *
 * THREAD     One.
 */
#ifndef TESTS_UNIT_HISTORIES_FIBERS_H
#define TESTS_UNIT_HISTORIES_FIBERS_H

#include "tests/unit/spool/chance.h"

#include <stdbool.h>
#include <stdint.h>

enum { FIBER_PROCESSES = 8, FIBER_NOBODY = -1 };

struct fibers {
	int64_t now_us;
	int64_t slack_us;
	struct chance chance;  /* who goes on */
	void (*enter)(int of); /* called whenever another process goes on */
	int busy;	       /* moments that were long, for somebody went on and on */
	const char *busiest;   /* the last of them */
};
extern struct fibers fibers;

struct fiber;

void fibers_begin(uint64_t seed, void (*enter)(int of));
struct fiber *fiber_new(int of, const char *name, void *(*run)(void *), void *argument);

bool fiber_wait(bool (*ready)(void *), void *of_what, int64_t until_us);
/* The fiber that runs waits; ready NULL: for the time alone. False: the time came first. */

void fiber_sleep(int64_t us); /* not longer than that, whatever the slack */

void fiber_join(struct fiber *); /* waits for its end; it is no more then */
bool fiber_runs(void);		 /* a fiber does, not who drives them */
int fibers_process(void);	 /* whose fiber runs, or who was entered */
void fibers_enter(int of);	 /* who drives them does something in the name of that process */

void fibers_run(int64_t until_us); /* all of them, until then */
bool fibers_run_for(bool (*done)(void *), void *of_what, int64_t until_us);
/* The same, or until that is so. False: it is not. */

void fibers_kill(int of);
void fibers_kill_self(void) __attribute__((noreturn)); /* the process whose fiber runs */
void fibers_pause(int of, bool paused);
bool fibers_paused(int of);
unsigned fibers_life(int of); /* a number that each death changes */

void fibers_after(int64_t delay_us, int of, void (*happen)(void *), void *to);
/* An event: happens in the name of that process, as it lives now, or never; FIBER_NOBODY: it always does. Those of
 * one time happen in the order in which they were made. */

#endif
