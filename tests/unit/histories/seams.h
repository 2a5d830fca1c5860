/* seams.h - clock, loops, threads, fence, ids and log of several relays in one program.
 *
 *	base/clock.h, loop.h, mailbox.h, thread.h, thread_pool.h, fine_timer.h, log.h: another body, on fibers.h
 *	base/fence.c, ident.c, content.c: as they are, but what they keep is that of the process that runs
 *	close, access, unlinkat, usleep, sem_wait, pthread_join ...: wrapped by the linker (Makefile)
 *
 * THREAD     One.
 */
#ifndef TESTS_UNIT_HISTORIES_SEAMS_H
#define TESTS_UNIT_HISTORIES_SEAMS_H

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

void seams_begin(void);
void seams_process_begins(int of); /* what it keeps is as at the start of a program */
void seams_enter(int of);	   /* from fibers_enter() */

void seams_clock(int of, int64_t up_ms, int64_t wall_ahead_ms);
/* When the history begins: since its boot; and what its wall clock is ahead of the right time. */
void seams_wall_jump(int of, int64_t ms);

/* What is logged. Values that are NULL are left out as in the log. */
struct seams_line {
	enum log_level level;
	const char *event;
	int n;
	const char *key[16], *value[16];
};
void seams_listen(void (*heard)(int process, const struct seams_line *));
const char *seams_value(const struct seams_line *, const char *key); /* or NULL */

#endif
