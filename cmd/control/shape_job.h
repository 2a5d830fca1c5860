/* shape_job.h - one `sluice shape` command, as the relay carries it out.
 *
 *	request -- shape_job_start --> [ job ] -- SPOOL_SHAPE --> spool
 *	   ^                             | ^                        |
 *	   +---- rows, as it reads them -+ +---- shape_job_answer --+
 *
 * OWNERSHIP  The job owns itself, until it has answered its request or lost it, and the spool does
 *            not have its question.
 * THREAD     Main.
 * ERRORS     Said to the client.
 */
#ifndef CMD_CONTROL_SHAPE_JOB_H
#define CMD_CONTROL_SHAPE_JOB_H

#include "cmd/control/control.h"
#include "cmd/maildrop/maildrop.h"
#include "spool/spool.h"

struct shape_job_asks {
	struct loop *loop, *spool;
	struct maildrop *maildrop; /* NULL: it is counted here, in */
	const char *folder;	   /* this queue */
};

void shape_job_start(struct request *, const struct shape_job_asks *);
/* The words of the request are "shape" and the rest. */

void shape_job_maildrop(struct maildrop_shape *);

void shape_job_answer(struct spool_command *);

#endif
