/* SPDX-License-Identifier: ISC */
#include "cmd/control/flow_job.h"

#include "base/clock.h"
#include "base/magic.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/control/order_job.h"
#include "cmd/text/flow_args.h"
#include "cmd/text/flow_print.h"

#include <stdlib.h>

enum { FLOW_JOB_MAGIC = 0xf10e0b01 };

struct flow_job {
	unsigned magic;
	struct request *request; /* NULL: the client has gone */
	struct loop *loop, *qmgr;
	struct order_args args; /* without what points into the request */
};

static void gone(struct request *r)
{
	struct flow_job *j = r->job;
	j->request = NULL;
}

void flow_job_start(struct request *r, struct loop *loop, struct loop *qmgr, struct loop *cluster)
{
	struct order_args args;
	struct buf error = {0};
	bool parsed = flow_args_parse(&args, r->argc, r->argv, &error);
	bool begins = order_job_begins(r, &args, parsed, cluster, &error);
	buf_fini(&error);
	if (!begins)
		return;
	struct flow_job *j = mem_zalloc(sizeof *j);
	j->magic = FLOW_JOB_MAGIC;
	j->request = r;
	j->loop = loop;
	j->qmgr = qmgr;
	j->args = args;
	j->args.name = j->args.conf_file = j->args.for_text = NULL;
	r->job = j;
	r->gone = gone;
	int64_t until_ms = args.for_ms ? clock_wall_ms() + args.for_ms : 0;
	if (args.cluster) {
		struct cluster_order *o = cluster_order_new(
			CLUSTER_FLOW, order_args_to_cluster(args.verb), args.name, loop, j);
		o->until_ms = until_ms;
		loop_post(cluster, &o->note);
		return;
	}
	struct flow_command *c = flow_command_new(flow_args_order(args.verb), args.name, loop, j);
	c->until_ms = until_ms;
	loop_post(qmgr, &c->note);
}

static struct flow_command *command_of(const struct cluster_order *o, struct loop *loop, void *job)
{
	enum flow_order order = flow_args_order(order_args_of_cluster(o->verb));
	struct flow_command *c = flow_command_new(order, o->name, loop, job);
	c->until_ms = o->until_ms;
	return c;
}

void flow_job_given(struct cluster_order *o)
{
	struct flow_job *j = o->owner;
	magic_check(j, FLOW_JOB_MAGIC);
	if (!o->why) {
		loop_post(j->qmgr, &command_of(o, j->loop, j)->note);
	} else {
		order_job_nothing_done(j->request, o->why);
		magic_clear(j);
		free(j);
	}
	cluster_order_free(&o);
}

void flow_job_apply(const struct cluster_order *o, struct loop *loop, struct loop *qmgr)
{
	loop_post(qmgr, &command_of(o, loop, NULL)->note);
}

static void say(const struct flow_job *j, struct flow_command *c)
{
	struct buf out = {0};
	flow_print_sort(c);
	if (c->op != FLOW_LIST)
		flow_print_done(&out, c);
	else if (j->args.json)
		flow_print_json(&out, c);
	else if (j->args.verb == ORDER_SHOW)
		flow_print_full(&out, c, clock_wall_ms());
	else
		flow_print_list(&out, c, clock_wall_ms());
	control_say(j->request, buf_data(&out), buf_len(&out));
	buf_fini(&out);
}

void flow_job_answer(struct flow_command *c)
{
	struct flow_job *j = c->owner;
	if (!j) { /* another node's operator has wanted it */
		flow_command_free(&c);
		return;
	}
	magic_check(j, FLOW_JOB_MAGIC);
	bool missing = c->name && c->found == 0 && !j->args.cluster;
	if (j->request && missing)
		control_complain(j->request, "sluice: %s: %s\n", c->name,
				 c->op == FLOW_RESUME ? "not suspended"
						      : "no mail of such a flow was seen");
	else if (j->request)
		say(j, c);
	if (j->request)
		control_finish(j->request, missing ? STATUS_REFUSED : STATUS_DONE);
	magic_clear(j);
	free(j);
	flow_command_free(&c);
}
