/* offline.h - commands on the queue while no relay is running.
 *
 *	client <-- socket pair --> [ a process of its own: control --> queue_job, shape_job ]
 *	                                                                   |
 *	                     list, show, shape:  spool_look, which changes nothing
 *	                     the others:         the spool itself, as after a start; no mail is taken up
 *
 * What comes out is what the relay would have answered. Whether one runs is not guessed: the lock of
 * the queue decides, and while a process has it nothing is read or changed past that. Orders that
 * change something are carried out as the relay's user; what was being delivered when the relay ended
 * is put back into the queue then, as at a start, and told of on standard error.
 *
 * OWNERSHIP  The descriptor is the caller's; offline_end() waits for the process.
 * THREAD     Main, when there is no other: the program forks.
 * ERRORS     -1 where there is nothing that could be a queue, or no process: the relay is just out of
 *            reach. What else is in the way is an answer, with STATUS_UNREACHABLE.
 * SEE        POSTFIX postsuper(1), postcat(1).
 */
#ifndef CMD_OPERATOR_OFFLINE_H
#define CMD_OPERATOR_OFFLINE_H

#include "base/conf.h"

#include <sys/types.h>

int offline_begin(struct conf *, pid_t *child);
void offline_end(pid_t child);

#endif
