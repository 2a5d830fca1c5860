/* trial.h - a program runs beside the relay, before it takes the relay's place: does it run at all, and would it start here?
 *
 *	trial_begin()	it is executed in a process of its own, with the rights, limits and sandbox that it will have
 *	trial_over()	asked now and then: has it ended?
 *	trial_passed()	what it said by its status, and otherwise
 *
 * The process has so many seconds, then the kernel ends it: nobody here may send it a signal.
 *
 * OWNERSHIP  The maker's, all zero while there is none. trial_forget() lets the process end by itself.
 * THREAD     Main.
 * ERRORS     trial_begin(): false and errno, where no process can be had. What can't be executed has a process, and fails.
 */
#ifndef CMD_RELAY_TRIAL_H
#define CMD_RELAY_TRIAL_H

#include "base/buf.h"

#include <stdbool.h>
#include <sys/types.h>

struct trial {
	pid_t pid; /* 0: none is under way */
	int output;
	int status; /* of wait() */
	int seconds;
	struct buf text;
};

bool trial_begin(struct trial *, const char *program, char **words, int seconds);
bool trial_over(struct trial *);

bool trial_passed(struct trial *, const char *unasked, struct buf *why);
/* unasked: what a program writes that does not know the question, and ends with STATUS_USAGE; it runs. */

void trial_forget(struct trial *);

#endif
