/* SPDX-License-Identifier: ISC */
#include "cmd/control/user_job.h"

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/text/user_args.h"
#include "cmd/text/user_print.h"

#include <stdlib.h>

struct user_job {
	struct request *request; /* NULL: the client has gone */
	bool full, json;
};

static void gone(struct request *r)
{
	struct user_job *j = r->job;
	j->request = NULL;
}

void user_job_start(struct request *r, struct loop *loop, struct loop *limiter)
{
	struct user_args args;
	struct buf error;
	buf_init(&error);
	if (!user_args_parse(&args, r->argc, r->argv, &error) || args.help) {
		control_complain(r, "sluice: %s\n", buf_cstr(&error));
		control_finish(r, STATUS_USAGE);
		buf_fini(&error);
		return;
	}
	buf_fini(&error);
	struct user_job *j = mem_zalloc(sizeof *j);
	j->request = r;
	j->full = args.full;
	j->json = args.json;
	r->job = j;
	r->gone = gone;
	loop_post(limiter,
		  &limiter_order_new(args.op, *args.login ? args.login : NULL, loop, j)->note);
}

static void say(struct request *r, const struct user_job *j, const struct limiter_order *o)
{
	struct buf out;
	buf_init(&out);
	if (o->op != LIMITER_LIST)
		user_print_done(&out, o);
	else if (j->json)
		user_print_json(&out, o);
	else if (j->full)
		user_print_full(&out, o);
	else
		user_print_list(&out, o);
	control_say(r, buf_data(&out), buf_len(&out));
	buf_fini(&out);
}

void user_job_answer(struct limiter_order *o)
{
	struct user_job *j = o->owner;
	struct request *r = j->request;
	bool missing = o->name && !o->found;
	if (r && missing)
		control_complain(r, "sluice: %s: %s\n", o->name,
				 o->op == LIMITER_RESUME ? "not suspended"
							 : "no such login was seen");
	else if (r)
		say(r, j, o);
	if (r)
		control_finish(r, missing ? STATUS_REFUSED : STATUS_DONE);
	free(j);
	limiter_order_free(&o);
}
