/* SPDX-License-Identifier: ISC */
#include "cmd/control/user_job.h"

#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/text/user_args.h"
#include "cmd/text/user_print.h"

#include <stdlib.h>

struct user_job {
	struct request *request; /* NULL: the client has gone */
	struct loop *loop, *limiter;
	bool full, json;
	bool cluster; /* all nodes have it */
};

static void gone(struct request *r)
{
	struct user_job *j = r->job;
	j->request = NULL;
}

static void give(struct user_job *j, const struct user_args *args, struct loop *cluster)
{
	static const enum cluster_verb verbs[] = {[LIMITER_SUSPEND] = CLUSTER_SUSPEND,
						  [LIMITER_RESUME] = CLUSTER_RESUME,
						  [LIMITER_RESET] = CLUSTER_RESET};
	j->cluster = true;
	loop_post(cluster,
		  &cluster_order_new(CLUSTER_USER, verbs[args->op], args->login, j->loop, j)->note);
}

void user_job_start(struct request *r, struct loop *loop, struct loop *limiter,
		    struct loop *cluster)
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
	if (args.cluster && !cluster) {
		control_complain(r, "sluice: --cluster: this node is alone\n");
		control_finish(r, STATUS_REFUSED);
		return;
	}
	struct user_job *j = mem_zalloc(sizeof *j);
	j->request = r;
	j->loop = loop;
	j->limiter = limiter;
	j->full = args.full;
	j->json = args.json;
	r->job = j;
	r->gone = gone;
	if (args.cluster)
		give(j, &args, cluster);
	else
		loop_post(limiter,
			  &limiter_order_new(args.op, *args.login ? args.login : NULL, loop, j)
				   ->note);
}

static struct limiter_order *order_of(const struct cluster_order *o, struct loop *loop, void *job)
{
	static const enum limiter_op ops[] = {[CLUSTER_SUSPEND] = LIMITER_SUSPEND,
					      [CLUSTER_RESUME] = LIMITER_RESUME,
					      [CLUSTER_RESET] = LIMITER_RESET};
	return limiter_order_new(ops[o->verb], o->name, loop, job);
}

void user_job_given(struct cluster_order *o)
{
	struct user_job *j = o->owner;
	if (!o->why) {
		loop_post(j->limiter, &order_of(o, j->loop, j)->note);
	} else {
		if (j->request) {
			control_complain(j->request, "sluice: nothing was done: %s\n", o->why);
			control_finish(j->request, STATUS_REFUSED);
		}
		free(j);
	}
	cluster_order_free(&o);
}

void user_job_apply(const struct cluster_order *o, struct loop *loop, struct loop *limiter)
{
	loop_post(limiter, &order_of(o, loop, NULL)->note);
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
	if (!j) { /* another node's operator has wanted it */
		limiter_order_free(&o);
		return;
	}
	struct request *r = j->request;
	bool missing = o->name && !o->found && !j->cluster;
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
