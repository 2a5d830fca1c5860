/* SPDX-License-Identifier: ISC */
#include "cmd/control/dest_job.h"

#include "base/clock.h"
#include "base/magic.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/control/order_job.h"
#include "cmd/text/dest_args.h"
#include "cmd/text/dest_print.h"
#include "cmd/text/order_print.h"

#include <stdlib.h>
#include <string.h>

enum { DEST_JOB_MAGIC = 0xde570b01 };

/* The mark before the name of a provider between nodes: no site, host or domain begins so. */
#define OF_PROVIDER "--provider="

struct dest_job {
	unsigned magic;
	struct request *request; /* NULL: the client has gone */
	struct order_job_asks asks;
	struct order_args args; /* without what points into the request */
};

void dest_job_start(struct request *r, const struct order_job_asks *asks)
{
	struct order_args args;
	struct buf error = {0};
	bool parsed = dest_args_parse(&args, r->argc, r->argv, &error);
	bool begins = order_job_begins(r, &args, parsed, asks->cluster, &error);
	buf_fini(&error);
	if (!begins)
		return;
	struct dest_job *j = mem_zalloc(sizeof *j);
	j->magic = DEST_JOB_MAGIC;
	j->asks = *asks;
	j->args = args;
	j->args.name = j->args.conf_file = j->args.provider = j->args.flow = j->args.for_text =
		NULL;
	control_lend(r, &j->request);
	int64_t until_ms = args.for_ms ? clock_wall_ms() + args.for_ms : 0;
	if (args.cluster) {
		char *name = args.provider ? mem_printf(OF_PROVIDER "%s", args.provider)
					   : mem_strdup(args.name);
		struct cluster_order *o =
			cluster_order_new(CLUSTER_DEST, args.verb, name, asks->loop, j);
		o->until_ms = until_ms;
		free(name);
		loop_post(asks->cluster, &o->note);
		return;
	}
	struct dest_command *c = dest_command_new(args.verb, args.name, asks->loop, j);
	c->provider = mem_strdup(args.provider);
	c->flow = mem_strdup(args.flow);
	c->until_ms = until_ms;
	c->domains = !order_changes(c->op) && !args.tabs;
	loop_post(asks->qmgr, &c->note);
}

static struct dest_command *command_of(const struct cluster_order *o, struct loop *loop, void *job)
{
	size_t len = strlen(OF_PROVIDER);
	bool of_provider = strncmp(o->name, OF_PROVIDER, len) == 0;
	struct dest_command *c = dest_command_new(o->verb, of_provider ? NULL : o->name, loop, job);
	c->provider = of_provider ? mem_strdup(o->name + len) : NULL;
	c->until_ms = o->until_ms;
	c->everywhere = true;
	return c;
}

void dest_job_given(struct cluster_order *o)
{
	struct dest_job *j = o->owner;
	magic_check(j, DEST_JOB_MAGIC);
	if (!o->why) {
		loop_post(j->asks.qmgr, &command_of(o, j->asks.loop, j)->note);
	} else {
		order_job_nothing_done(j->request, o->why);
		magic_free(j);
	}
	cluster_order_free(&o);
}

void dest_job_apply(const struct cluster_order *o, struct loop *loop, struct loop *qmgr)
{
	loop_post(qmgr, &command_of(o, loop, NULL)->note);
}

static void say_found(struct request *r, const struct dest_job *j, struct dest_command *c)
{
	struct buf out = {0};
	if (!order_changes(c->op))
		dest_print_sort(c);
	if (order_changes(c->op) && j->args.json)
		order_print_json(&out, c->provider ? "provider" : "destination",
				 c->provider ? c->provider : c->name, c->op, c->until_ms);
	else if (order_changes(c->op))
		dest_print_done(&out, c);
	else if (j->args.tabs)
		dest_print_tabs(&out, c);
	else if (j->args.json)
		dest_print_json(&out, c);
	else if (j->args.verb == ORDER_SHOW)
		dest_print_full(&out, c);
	else
		dest_print_list(&out, c);
	control_say(r, buf_data(&out), buf_len(&out));
	buf_fini(&out);
}

void dest_job_answer(struct dest_command *c)
{
	struct dest_job *j = c->owner;
	if (!j) { /* another node's operator has wanted it */
		dest_command_free(&c);
		return;
	}
	magic_check(j, DEST_JOB_MAGIC);
	struct request *r = j->request;
	bool missing = (c->name || c->provider || c->flow) && c->found == 0 && !j->args.cluster;
	if (r && missing)
		control_complain(r, "sluice: %s: %s\n",
				 c->flow   ? c->flow
				 : c->name ? c->name
					   : c->provider,
				 c->op == ORDER_RESUME ? "not suspended"
				 : c->flow     ? "no mail of this flow is being worked on there"
				 : c->provider ? "there is no such provider"
					       : "no such site, host or domain is known");
	else if (r)
		say_found(r, j, c);
	if (r)
		control_finish(r, missing || !order_job_is_kept(r, c->op, j->asks.unkept)
					  ? STATUS_REFUSED
					  : STATUS_DONE);
	magic_free(j);
	dest_command_free(&c);
}
