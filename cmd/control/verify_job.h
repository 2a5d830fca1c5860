/* verify_job.h - one `sluice verify` command, as the relay carries it out.
 *
 *	request -- verify_job_start --> VERIFY_ASK --> qmgr --> verify_job_answer --> text
 *
 *	30 s without one are the answer, and the question goes on
 *
 * OWNERSHIP  The request has a word for its question, which outlives it.
 * THREAD     Main.
 * ERRORS     Said to the client.
 */
#ifndef CMD_CONTROL_VERIFY_JOB_H
#define CMD_CONTROL_VERIFY_JOB_H

#include "base/verification.h"
#include "cmd/control/control.h"

void verify_job_start(struct request *, struct loop *, struct loop *qmgr);
/* The words of the request are "verify", the address, "--from", the sender or "", and perhaps "--json". */

void verify_job_answer(struct verify *);

#endif
