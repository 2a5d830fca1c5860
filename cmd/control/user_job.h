/* user_job.h - one `sluice user` command, as the relay carries it out.
 *
 *	request -- user_job_start --> with --cluster: CLUSTER_ORDER --> cluster --> user_job_given
 *	                          \-> LIMITER_ORDER --> limiter --> user_job_answer --> text
 *
 * OWNERSHIP  The job lives until the limiter has answered, also when the client has gone.
 * THREAD     Main.
 * ERRORS     Said to the client.
 */
#ifndef CMD_CONTROL_USER_JOB_H
#define CMD_CONTROL_USER_JOB_H

#include "cmd/control/control.h"
#include "cluster/cluster.h"
#include "smtpd/limiter.h"

void user_job_start(struct request *, struct loop *, struct loop *limiter, struct loop *cluster);
/* The words of the request are "user" and the rest. cluster is NULL where this node is alone. */

void user_job_given(struct cluster_order *); /* all nodes have it, this one is next; or why not */

void user_job_apply(const struct cluster_order *, struct loop *, struct loop *limiter);
/* Another node's operator has wanted it of all. */

void user_job_answer(struct limiter_order *);

#endif
