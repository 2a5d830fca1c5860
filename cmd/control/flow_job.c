/* SPDX-License-Identifier: ISC */
#include "cmd/control/flow_job.h"

#include "base/clock.h"
#include "base/magic.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/control/order_job.h"
#include "cmd/text/flow_args.h"
#include "cmd/text/flow_print.h"
#include "cmd/text/flow_sums.h"
#include "cmd/text/flow_tell.h"
#include "cmd/text/order_print.h"

#include <assert.h>
#include <stdlib.h>

enum { FLOW_JOB_MAGIC = 0xf10e0b01 };

struct flow_job {
	unsigned magic;
	struct request *request; /* NULL: the client has gone */
	struct order_job_asks asks;
	struct order_args args;	     /* without what points into the request */
	char *name;		     /* of an inquiry; or NULL */
	struct cluster_asked *asked; /* by a node, and not by a client; or NULL */
};

static void end_job(struct flow_job *j)
{
	magic_clear(j);
	free(j->name);
	free(j);
}

static void ask_nodes(struct flow_job *j, const char *name)
{
	char *question = flow_args_question(name);
	j->name = mem_strdup(name);
	loop_post(j->asks.cluster, &cluster_inquiry_new(question, j->asks.loop, j)->note);
	free(question);
}

void flow_job_start(struct request *r, const struct order_job_asks *asks)
{
	struct order_args args;
	struct buf error = {0};
	bool parsed = flow_args_parse(&args, r->argc, r->argv, &error);
	bool begins = order_job_begins(r, &args, parsed, asks->cluster, &error);
	buf_fini(&error);
	if (!begins)
		return;
	struct flow_job *j = mem_zalloc(sizeof *j);
	j->magic = FLOW_JOB_MAGIC;
	j->asks = *asks;
	j->args = args;
	j->args.name = j->args.conf_file = j->args.for_text = NULL;
	control_lend(r, &j->request);
	if (args.cluster && args.verb == ORDER_LIST) {
		ask_nodes(j, args.name);
		return;
	}
	int64_t until_ms = args.for_ms ? clock_wall_ms() + args.for_ms : 0;
	if (args.cluster) {
		struct cluster_order *o =
			cluster_order_new(CLUSTER_FLOW, args.verb, args.name, asks->loop, j);
		o->until_ms = until_ms;
		loop_post(asks->cluster, &o->note);
		return;
	}
	struct flow_command *c = flow_command_new(args.verb, args.name, asks->loop, j);
	c->until_ms = until_ms;
	loop_post(asks->qmgr, &c->note);
}

static struct flow_command *command_of(const struct cluster_order *o, struct loop *loop, void *job)
{
	struct flow_command *c = flow_command_new(o->verb, o->name, loop, job);
	c->until_ms = o->until_ms;
	return c;
}

void flow_job_given(struct cluster_order *o)
{
	struct flow_job *j = o->owner;
	magic_check(j, FLOW_JOB_MAGIC);
	if (!o->why) {
		loop_post(j->asks.qmgr, &command_of(o, j->asks.loop, j)->note);
	} else {
		order_job_nothing_done(j->request, o->why);
		end_job(j);
	}
	cluster_order_free(&o);
}

void flow_job_apply(const struct cluster_order *o, struct loop *loop, struct loop *qmgr)
{
	loop_post(qmgr, &command_of(o, loop, NULL)->note);
}

static void say_answer(const struct flow_job *j, struct flow_command *c)
{
	struct buf out = {0};
	flow_print_sort(c);
	if (order_changes(c->op) && j->args.json)
		order_print_json(&out, "flow", c->name, c->op, c->until_ms);
	else if (order_changes(c->op))
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

static void tell_node(struct flow_job *j, struct flow_command *c)
{
	flow_tell(&j->asked->text, c, CLUSTER_TEXT_MAX);
	loop_post(j->asks.cluster, &j->asked->note);
	end_job(j);
	flow_command_free(&c);
}

void flow_job_answer(struct flow_command *c)
{
	struct flow_job *j = c->owner;
	if (!j) { /* another node's operator has wanted it */
		flow_command_free(&c);
		return;
	}
	magic_check(j, FLOW_JOB_MAGIC);
	if (j->asked) {
		tell_node(j, c);
		return;
	}
	bool missing = c->name && c->found == 0 && !j->args.cluster;
	if (j->request && missing)
		control_complain(j->request, "sluice: %s: %s\n", c->name,
				 c->op == ORDER_RESUME ? "not suspended"
						       : "no mail of such a flow was seen");
	else if (j->request)
		say_answer(j, c);
	if (j->request)
		control_finish(j->request,
			       missing || !order_job_is_kept(j->request, c->op, j->asks.unkept)
				       ? STATUS_REFUSED
				       : STATUS_DONE);
	end_job(j);
	flow_command_free(&c);
}

void flow_job_asked(struct cluster_asked *a, struct loop *loop, struct loop *qmgr,
		    struct loop *cluster)
{
	const char *name;
	a->note.type = CLUSTER_TOLD;
	a->unknown = !flow_args_asked(a->question, &name);
	if (a->unknown) {
		loop_post(cluster, &a->note);
		return;
	}
	struct flow_job *j = mem_zalloc(sizeof *j);
	j->magic = FLOW_JOB_MAGIC;
	j->asks.cluster = cluster;
	j->asked = a;
	loop_post(qmgr, &flow_command_new(ORDER_LIST, name, loop, j)->note);
}

static void say_sums(const struct flow_job *j, const struct cluster_inquiry *s)
{
	struct flow_sums sums;
	struct buf out = {0};
	flow_sums_init(&sums, s);
	if (j->args.json)
		flow_sums_json(&out, &sums);
	else
		flow_sums_list(&out, &sums, clock_wall_ms());
	bool missing = j->name && !sums.table;
	control_say(j->request, buf_data(&out), buf_len(&out));
	if (missing)
		control_complain(j->request, "sluice: %s: no mail of such a flow was seen\n",
				 j->name);
	control_finish(j->request, missing ? STATUS_REFUSED : STATUS_DONE);
	flow_sums_fini(&sums);
	buf_fini(&out);
}

void flow_job_inquired(struct cluster_inquiry *s)
{
	struct flow_job *j = s->owner;
	magic_check(j, FLOW_JOB_MAGIC);
	assert(!j->asked);
	if (j->request && s->why) {
		control_complain(j->request, "sluice: no node was asked: %s\n", s->why);
		control_finish(j->request, STATUS_REFUSED);
	} else if (j->request) {
		say_sums(j, s);
	}
	end_job(j);
	cluster_inquiry_free(&s);
}
