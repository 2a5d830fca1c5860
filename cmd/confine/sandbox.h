/* sandbox.h - restricts what the running relay can reach.
 *
 *	sandbox_hide_memory()	first: no core, and no other process of the user looks at the memory
 *	sandbox_enter()		when ports are bound and rights given up, before any other thread:
 *
 *	    Landlock (landlock.h)	the queue; the log's folder; for reading the folders of the
 *					configuration and of the files that it names, what the resolver
 *					and OpenSSL read; to run, the program's folder and libraries
 *	    seccomp (syscalls.h)	the system calls that the relay makes; none but main may
 *					execute a program
 *
 * A restart executes the new program in the same process: it inherits all of this and adds nothing, so
 * a reload and a restart are refused where their configuration names what can't be reached from
 * inside. To reach it, stop the relay and start it.
 *
 * Folders, not files, because a file that is replaced by another is another one to Landlock.
 *
 * OWNERSHIP  The process's; nothing is to be freed.
 * THREAD     Main.
 * ERRORS     With "sandbox = required", and a kernel that has not all of it: sandbox_enter() returns
 *            false and says what is missing. With "auto" that is logged.
 * SEE        sluice(8), "SANDBOX".
 */
#ifndef CMD_CONFINE_SANDBOX_H
#define CMD_CONFINE_SANDBOX_H

#include "base/conf.h"

void sandbox_hide_memory(void);
/* Before keys are read. sandbox_enter() with "off" takes it back: then a crash leaves a core. */

bool sandbox_enter(const struct conf *, struct buf *error);
/* Threads that thread_start() starts from now on restrict themselves further. Logs an event. */

bool sandbox_reaches(const struct conf *, bool restart, struct buf *says);
/* Can all that this configuration names be opened from inside? restart: also what is settled at a
 * start only. False: a line for each fault. Always true outside. */

bool sandbox_reaches_program(const char *path, struct buf *says);
/* The same of a program that is to be executed. */

void sandbox_hand_over(void);
/* Leave word of it in the environment, for the program that is executed in this process. */

#endif
