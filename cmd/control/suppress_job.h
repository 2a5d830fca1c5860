/* suppress_job.h - one `sluice suppress` command, as the relay carries it out.
 *
 *	request -- suppress_job_start --> SUPPRESS_COMMAND --> qmgr --> suppress_job_answer --> text
 *
 * OWNERSHIP  The job lives until qmgr has answered, also when the client has gone.
 * THREAD     Main.
 * ERRORS     Said to the client.
 */
#ifndef CMD_CONTROL_SUPPRESS_JOB_H
#define CMD_CONTROL_SUPPRESS_JOB_H

#include "cmd/control/control.h"
#include "qmgr/suppress_command.h"

struct order_job_asks;

void suppress_job_start(struct request *, const struct order_job_asks *);
/* The words of the request are "suppress", the order, an address, "@domain" or "", and perhaps "--json". */

void suppress_job_answer(struct suppress_command *);

#endif
