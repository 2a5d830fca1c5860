/* explain_job.h - one `sluice explain` command, as the relay carries it out.
 *
 *	request -- explain_job_start --> [ job ] -- QMGR_EXPLAIN --> qmgr
 *	   ^                               |  |                        |
 *	   |                               |  +-- SPOOL_SHOW --> spool | for what qmgr does not have
 *	   +------ the whole answer -------+ <-- explain_job_* --------+
 *
 * OWNERSHIP  The job owns itself, until nothing of it is in flight and its request is answered or
 *            lost.
 * THREAD     Main.
 * ERRORS     Said to the client: what neither knows is refused.
 */
#ifndef CMD_CONTROL_EXPLAIN_JOB_H
#define CMD_CONTROL_EXPLAIN_JOB_H

#include "cmd/control/control.h"
#include "qmgr/explain.h"
#include "spool/spool.h"

void explain_job_start(struct request *, struct loop *, struct loop *qmgr, struct loop *spool);
/* The words of the request are "explain", an id or a site, and perhaps "--json" in front of it. */

void explain_job_answer(struct explain_question *);
void explain_job_shown(struct spool_command *);

#endif
