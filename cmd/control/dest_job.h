/* dest_job.h - one `sluice dest` command, as the relay carries it out.
 *
 *	request -- dest_job_start --> with --cluster: CLUSTER_ORDER --> cluster --> dest_job_given
 *	                          \-> DEST_COMMAND --> qmgr --> dest_job_answer --> text
 *
 * OWNERSHIP  The job lives until qmgr has answered, also when the client has gone.
 * THREAD     Main.
 * ERRORS     Said to the client.
 */
#ifndef CMD_CONTROL_DEST_JOB_H
#define CMD_CONTROL_DEST_JOB_H

#include "cmd/control/control.h"
#include "cluster/cluster.h"
#include "qmgr/dest_command.h"

struct order_job_asks;

void dest_job_start(struct request *, const struct order_job_asks *);
/* The words of the request are "dest" and the rest. */

void dest_job_given(struct cluster_order *); /* all nodes have it, this one is next; or why not */

void dest_job_apply(const struct cluster_order *, struct loop *, struct loop *qmgr);
/* Another node's operator has wanted it of all. */

void dest_job_answer(struct dest_command *);

#endif
