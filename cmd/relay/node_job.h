/* node_job.h - one order about the nodes of a cluster, under way in the relay.
 *
 *	node list | adopt NAME | retire NAME --> NODE_ORDER --> node --> node_job_answer --> text
 *	node drain --> may it? --> the relay ends; its queue is another's then
 *
 * OWNERSHIP  The order lives until the node has answered, also when the client has gone.
 * THREAD     Main.
 * ERRORS     Said to the client.
 */
#ifndef CMD_RELAY_NODE_JOB_H
#define CMD_RELAY_NODE_JOB_H

#include "cmd/control/control.h"
#include "replica/node.h"

struct server;

void node_job_start(struct server *, struct request *);
/* The words of the request are "node" and the rest. */

void node_job_answer(struct server *, struct node_order *);
void node_job_drained(struct server *, const char *why_not);
/* At the end. NULL: its queue is to be adopted, or was not to be. */

void node_job_lost(struct server *); /* the relay starts again, and waits for an epoch */

#endif
