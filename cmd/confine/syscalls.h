/* syscalls.h - restricts by seccomp which system calls the program can make from now on.
 *
 *	syscalls_restrict()	    main: what is in syscall_table.h, and nothing else
 *	syscalls_restrict_thread()  each other thread: the same less what only main needs, above all to
 *				    execute a program
 *
 * Each thread that talks to strangers so has two filters; main, which doesn't, has one. They can't be
 * undone, and hold for the program that follows at a restart.
 *
 * OWNERSHIP  The second filter is compiled once, and kept.
 * THREAD     syscalls_restrict(), syscalls_prepare(): main, before there is any other.
 * ERRORS     False, and why in error. A thread that can't be restricted ends the program.
 * SEE        seccomp(2), seccomp_rule_add(3).
 */
#ifndef CMD_CONFINE_SYSCALLS_H
#define CMD_CONFINE_SYSCALLS_H

#include "base/buf.h"

#include <stdbool.h>

bool syscalls_offered(void); /* by the kernel */

bool syscalls_prepare(struct buf *error);
/* Compile the threads' filter. First, for that needs calls which are refused afterwards. */

bool syscalls_restrict(struct buf *error);
void syscalls_restrict_thread(void);

#endif
