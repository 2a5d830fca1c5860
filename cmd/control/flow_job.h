/* flow_job.h - one `sluice flow` command, as the relay carries it out.
 *
 *	request -- flow_job_start --> FLOW_COMMAND --> qmgr --> flow_job_answer --> text
 *
 * OWNERSHIP  The job lives until qmgr has answered, also when the client has gone.
 * THREAD     Main.
 * ERRORS     Said to the client.
 */
#ifndef CMD_CONTROL_FLOW_JOB_H
#define CMD_CONTROL_FLOW_JOB_H

#include "cmd/control/control.h"
#include "qmgr/flow_command.h"

void flow_job_start(struct request *, struct loop *, struct loop *qmgr);
/* The words of the request are "flow" and the rest. */

void flow_job_answer(struct flow_command *);

#endif
