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
	bool full, json, tabs;
};

static void gone(struct request *r)
{
	struct dest_job *j = r->job;
	j->request = NULL;
}

void dest_job_start(struct request *r, struct loop *loop, struct loop *qmgr)
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
	struct dest_job *j = mem_zalloc(sizeof *j);
	j->magic = DEST_JOB_MAGIC;
	j->request = r;
	j->full = args.full;
	j->json = args.json;
	j->tabs = args.tabs;
	r->job = j;
	r->gone = gone;
	loop_post(qmgr, &dest_command_new(args.order, args.name, loop, j)->note);
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
	magic_check(j, DEST_JOB_MAGIC);
	struct request *r = j->request;
	bool missing = c->name && c->found == 0;
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
