/* user_job.h - one `sluice user` command, as the relay carries it out.
 *
 *	request -- user_job_start --> LIMITER_ORDER --> limiter --> user_job_answer --> text
 *
 * OWNERSHIP  The job lives until the limiter has answered, also when the client has gone.
 * THREAD     Main.
 * ERRORS     Said to the client.
 */
#ifndef CMD_CONTROL_USER_JOB_H
#define CMD_CONTROL_USER_JOB_H

#include "cmd/control/control.h"
#include "smtpd/limiter.h"

void user_job_start(struct request *, struct loop *, struct loop *limiter);
/* The words of the request are "user" and the rest. */

void user_job_answer(struct limiter_order *);

#endif
