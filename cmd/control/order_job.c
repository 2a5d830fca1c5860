/* SPDX-License-Identifier: ISC */
#include "cmd/control/order_job.h"

#include "cluster/cluster.h"
#include "cmd/cmd.h"

bool order_job_begins(struct request *r, const struct order_args *args, bool parsed,
		      const struct loop *cluster, struct buf *error)
{
	if (!parsed || args->help) {
		control_complain(r, "sluice: %s\n", buf_cstr(error));
		control_finish(r, STATUS_USAGE);
		return false;
	}
	if (args->cluster && !cluster) {
		control_complain(r, "sluice: --cluster: %s\n",
				 cluster_built() ? "this node is alone"
						 : "this sluice was built without its cluster");
		control_finish(r, STATUS_REFUSED);
		return false;
	}
	return true;
}

/* As of an order on the queue while its disk fails. */
bool order_job_is_written(struct request *r, const char *unkept)
{
	if (unkept)
		control_complain(r, "sluice: the folder of the queue takes no file now: a restart "
				    "before it does would undo this\n");
	return !unkept;
}

bool order_job_is_kept(struct request *r, enum order o, char *const *unkept)
{
	return (o != ORDER_SUSPEND && o != ORDER_RESUME) || order_job_is_written(r, *unkept);
}

bool order_job_has_read(struct request *r, const struct queue_unread *u)
{
	struct buf why = {0};
	if (u->messages > 0) {
		queue_print_unread(&why, u);
		control_complain(r, "sluice: %s\n", buf_cstr(&why));
	}
	buf_fini(&why);
	return u->messages == 0;
}

void order_job_nothing_done(struct request *r, const char *why)
{
	if (!r)
		return;
	control_complain(r, "sluice: nothing was done: %s\n", why);
	control_finish(r, STATUS_REFUSED);
}
