/* SPDX-License-Identifier: ISC */
#include "cmd/control/dest_job.h"

#include "base/magic.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/text/dest_args.h"
#include "cmd/text/dest_print.h"

#include <stdlib.h>

enum { DEST_JOB_MAGIC = 0xde570b01 };

struct dest_job {
	unsigned magic;
	struct request *request; /* NULL: the client has gone */
	struct loop *loop, *qmgr;
	bool full, json, tabs;
	bool cluster; /* all nodes have it */
};

static void gone(struct request *r)
{
	struct dest_job *j = r->job;
	j->request = NULL;
}

static void give(struct dest_job *j, const struct dest_args *args, struct loop *cluster)
{
	static const enum cluster_verb verbs[] = {[DEST_SUSPEND] = CLUSTER_SUSPEND,
						  [DEST_RESUME] = CLUSTER_RESUME,
						  [DEST_RESET] = CLUSTER_RESET};
	j->cluster = true;
	loop_post(
		cluster,
		&cluster_order_new(CLUSTER_DEST, verbs[args->order], args->name, j->loop, j)->note);
}

void dest_job_start(struct request *r, struct loop *loop, struct loop *qmgr, struct loop *cluster)
{
	struct dest_args args;
	struct buf error;
	buf_init(&error);
	if (!dest_args_parse(&args, r->argc, r->argv, &error) || args.help) {
		control_complain(r, "sluice: %s\n", buf_cstr(&error));
		control_finish(r, STATUS_USAGE);
		buf_fini(&error);
		return;
	}
	if (args.cluster && !cluster) {
		control_complain(r, "sluice: --cluster: this node is alone\n");
		control_finish(r, STATUS_REFUSED);
		return;
	}
	struct dest_job *j = mem_zalloc(sizeof *j);
	j->magic = DEST_JOB_MAGIC;
	j->request = r;
	j->loop = loop;
	j->qmgr = qmgr;
	j->full = args.full;
	j->json = args.json;
	j->tabs = args.tabs;
	r->job = j;
	r->gone = gone;
	if (args.cluster)
		give(j, &args, cluster);
	else
		loop_post(qmgr, &dest_command_new(args.order, args.name, loop, j)->note);
}

static const enum dest_order orders[] = {[CLUSTER_SUSPEND] = DEST_SUSPEND,
					 [CLUSTER_RESUME] = DEST_RESUME,
					 [CLUSTER_RESET] = DEST_RESET};

static struct dest_command *command_of(const struct cluster_order *o, struct loop *loop, void *job)
{
	struct dest_command *c = dest_command_new(orders[o->verb], o->name, loop, job);
	c->everywhere = true;
	return c;
}

void dest_job_given(struct cluster_order *o)
{
	struct dest_job *j = o->owner;
	magic_check(j, DEST_JOB_MAGIC);
	if (!o->why) {
		loop_post(j->qmgr, &command_of(o, j->loop, j)->note);
	} else {
		if (j->request) {
			control_complain(j->request, "sluice: nothing was done: %s\n", o->why);
			control_finish(j->request, STATUS_REFUSED);
		}
		magic_clear(j);
		free(j);
	}
	cluster_order_free(&o);
}

void dest_job_apply(const struct cluster_order *o, struct loop *loop, struct loop *qmgr)
{
	loop_post(qmgr, &command_of(o, loop, NULL)->note);
}

static void say_found(struct request *r, const struct dest_job *j, struct dest_command *c)
{
	struct buf out;
	buf_init(&out);
	if (c->op == DEST_LIST)
		dest_print_sort(c);
	if (c->op != DEST_LIST)
		dest_print_done(&out, c);
	else if (j->tabs)
		dest_print_tabs(&out, c);
	else if (j->json)
		dest_print_json(&out, c);
	else if (j->full)
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
	bool missing = c->name && c->found == 0 && !j->cluster;
	if (r && missing)
		control_complain(r, "sluice: %s: %s\n", c->name,
				 c->op == DEST_RESUME ? "not suspended"
						      : "no such site, host or domain is known");
	else if (r)
		say_found(r, j, c);
	if (r)
		control_finish(r, missing ? STATUS_REFUSED : STATUS_DONE);
	magic_clear(j);
	free(j);
	dest_command_free(&c);
}
