/* user_job.h - one `sluice user` command, as the relay carries it out.
 *
 *	request -- user_job_start --> with --cluster: CLUSTER_ORDER --> cluster --> user_job_given
 *	                          \-> LIMITER_ORDER --> limiter --> user_job_answer --> text
 *	of show of one login before that: SPOOL_LIST, page by page --> spool --> user_job_counted
 *
 * OWNERSHIP  The job lives until limiter and spool have answered, also when the client has gone.
 * THREAD     Main.
 * ERRORS     Said to the client.
 */
#ifndef CMD_CONTROL_USER_JOB_H
#define CMD_CONTROL_USER_JOB_H

#include "cmd/control/control.h"
#include "cluster/cluster.h"
#include "smtpd/limiter.h"
#include "spool/spool.h"

/* Whom it asks, and where the answers come to. cluster is NULL where this node is alone. */
struct user_job_asks {
	struct loop *loop, *limiter, *spool, *cluster;
	char *const *unkept; /* not NULL: who is suspended could not be written to its file yet */
};

void user_job_start(struct request *, const struct user_job_asks *);
/* The words of the request are "user" and the rest. */

void user_job_given(struct cluster_order *); /* all nodes have it, this one is next; or why not */

void user_job_apply(const struct cluster_order *, struct loop *, struct loop *limiter);
/* Another node's operator has wanted it of all. */

void user_job_answer(struct limiter_order *);
void user_job_counted(struct spool_command *);

#endif
