/* dest_job.h - one `sluice dest` command, as the relay carries it out.
 *
 *	request -- dest_job_start --> DEST_COMMAND --> qmgr --> dest_job_answer --> text
 *
 * OWNERSHIP  The job lives until qmgr has answered, also when the client has gone.
 * THREAD     Main.
 * ERRORS     Said to the client.
 */
#ifndef CMD_CONTROL_DEST_JOB_H
#define CMD_CONTROL_DEST_JOB_H

#include "cmd/control/control.h"
#include "qmgr/dest_command.h"

void dest_job_start(struct request *, struct loop *, struct loop *qmgr);
/* The words of the request are "dest" and the rest. */

void dest_job_answer(struct dest_command *);

#endif
