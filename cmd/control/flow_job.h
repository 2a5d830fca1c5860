/* flow_job.h - one `sluice flow` command, as the relay carries it out.
 *
 *	request -- flow_job_start --> with --cluster: CLUSTER_ORDER --> cluster --> flow_job_given
 *	                          \-> FLOW_COMMAND --> qmgr --> flow_job_answer --> text
 *	flow list --cluster --> CLUSTER_INQUIRY --> all nodes: flow_job_asked --> FLOW_COMMAND --> qmgr --> CLUSTER_TOLD
 *	                                      \-> flow_job_inquired --> text
 *
 * OWNERSHIP  The job lives until qmgr has answered, also when the client has gone.
 * THREAD     Main.
 * ERRORS     Said to the client.
 */
#ifndef CMD_CONTROL_FLOW_JOB_H
#define CMD_CONTROL_FLOW_JOB_H

#include "cmd/control/control.h"
#include "cluster/cluster.h"
#include "qmgr/flow_command.h"

struct order_job_asks;

void flow_job_start(struct request *, const struct order_job_asks *);
/* The words of the request are "flow" and the rest. */

void flow_job_given(struct cluster_order *); /* all nodes have it, this one is next; or why not */

void flow_job_inquired(
	struct cluster_inquiry *); /* what all nodes have said; or why they were not asked */

void flow_job_asked(struct cluster_asked *, struct loop *, struct loop *qmgr, struct loop *cluster);
/* A node has asked all for theirs. */

void flow_job_apply(const struct cluster_order *, struct loop *, struct loop *qmgr);
/* Another node's operator has wanted it of all. */

void flow_job_answer(struct flow_command *);

#endif
