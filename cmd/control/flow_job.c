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
	bool json, full;
};

static void gone(struct request *r)
{
	struct flow_job *j = r->job;
	j->request = NULL;
}

void flow_job_start(struct request *r, struct loop *loop, struct loop *qmgr)
{
	struct order_args args;
	struct buf error = {0};
	bool parsed = flow_args_parse(&args, r->argc, r->argv, &error);
	bool begins = order_job_begins(r, &args, parsed, NULL, &error);
	buf_fini(&error);
	if (!begins)
		return;
	struct flow_job *j = mem_zalloc(sizeof *j);
	j->magic = FLOW_JOB_MAGIC;
	j->request = r;
	j->json = args.json;
	j->full = args.verb == ORDER_SHOW;
	r->job = j;
	r->gone = gone;
	struct flow_command *c = flow_command_new(flow_args_order(args.verb), args.name, loop, j);
	c->until_ms = args.for_ms ? clock_wall_ms() + args.for_ms : 0;
	loop_post(qmgr, &c->note);
}

static void say(const struct flow_job *j, struct flow_command *c)
{
	struct buf out = {0};
	flow_print_sort(c);
	if (c->op != FLOW_LIST)
		flow_print_done(&out, c);
	else if (j->json)
		flow_print_json(&out, c);
	else if (j->full)
		flow_print_full(&out, c, clock_wall_ms());
	else
		flow_print_list(&out, c, clock_wall_ms());
	control_say(j->request, buf_data(&out), buf_len(&out));
	buf_fini(&out);
}

void flow_job_answer(struct flow_command *c)
{
	struct flow_job *j = c->owner;
	magic_check(j, FLOW_JOB_MAGIC);
	bool missing = c->name && c->found == 0;
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
