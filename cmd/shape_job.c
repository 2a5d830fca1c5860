/* SPDX-License-Identifier: ISC */
#include "cmd/shape_job.h"

#include "base/magic.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/shape_args.h"
#include "cmd/shape_print.h"

#include <stdlib.h>

enum { ROWS_AT_ONCE = 500 };

enum { SHAPE_JOB_MAGIC = 0x5ba9e0b1 };

struct shape_job {
	unsigned magic;
	struct request *request; /* NULL: the client has gone */
	struct shape_args args;
	struct spool_command *answer; /* NULL: the spool has it */
	struct shape_view view;
	size_t next; /* row */
	int shown;   /* lines below the heading */
};

static void job_free(struct shape_job *j)
{
	spool_command_free(&j->answer);
	magic_clear(j);
	free(j);
}

static void put_row(struct shape_job *j, const struct shape_row *row, struct buf *out)
{
	if (j->args.top > 0 && j->shown >= j->args.top)
		return;
	if (row != &j->view.shape->all && shape_row_is_parent(row) &&
	    row->subdomains < j->args.subdomains_min)
		return;
	j->shown++;
	if (j->args.json)
		shape_print_json(out, &j->view, row);
	else
		shape_print_row(out, &j->view, row);
}

static void put_rows(struct shape_job *j)
{
	const struct shape *s = j->view.shape;
	struct buf out;
	buf_init(&out);
	for (int n = 0; n < ROWS_AT_ONCE && j->next < s->n; n++)
		put_row(j, &s->row[j->next++], &out);
	control_say(j->request, buf_data(&out), buf_len(&out));
	buf_fini(&out);
}

static void go_on(struct shape_job *j)
{
	while (j->next < j->view.shape->n) {
		if (control_full(j->request))
			return;
		put_rows(j);
	}
	struct request *r = j->request;
	job_free(j);
	control_finish(r, STATUS_DONE);
}

static void resume(struct request *r)
{
	struct shape_job *j = r->job;
	if (j->answer)
		go_on(j);
}

static void gone(struct request *r)
{
	struct shape_job *j = r->job;
	j->request = NULL;
	if (j->answer)
		job_free(j);
}

/* The row of all counts as a line, as qshape has it. */
static void begin_answer(struct shape_job *j)
{
	struct buf out;
	buf_init(&out);
	j->shown = 1;
	if (j->args.json)
		shape_print_json(&out, &j->view, &j->view.shape->all);
	else
		shape_print_heading(&out, &j->view);
	control_say(j->request, buf_data(&out), buf_len(&out));
	buf_fini(&out);
}

void shape_job_answer(struct spool_command *c)
{
	struct shape_job *j = c->owner;
	magic_check(j, SHAPE_JOB_MAGIC);
	j->answer = c;
	if (!j->request) {
		job_free(j);
		return;
	}
	shape_view_init(&j->view, c->shape, j->args.minutes, j->args.width, j->args.color);
	begin_answer(j);
	go_on(j);
}

static void ask(struct shape_job *j, struct loop *loop, struct loop *spool)
{
	struct spool_command *c = spool_command_new(SPOOL_SHAPE, loop, j);
	c->shape = shape_new();
	c->shape->senders = j->args.senders;
	c->shape->parents = j->args.parents;
	c->shape->linear = j->args.linear;
	c->shape->buckets = j->args.buckets;
	c->shape->first_ms = (int64_t)(j->args.minutes * 60000 + 0.5);
	c->shape->queues = j->args.queues;
	loop_post(spool, &c->note);
}

void shape_job_start(struct request *r, struct loop *loop, struct loop *spool)
{
	struct shape_job *j = mem_zalloc(sizeof *j);
	struct buf error;
	buf_init(&error);
	if (!shape_args_parse(&j->args, r->argc, r->argv, &error) || j->args.help) {
		control_complain(r, "sluice: %s\n", buf_cstr(&error));
		free(j);
		control_finish(r, STATUS_USAGE);
	} else {
		j->magic = SHAPE_JOB_MAGIC;
		j->request = r;
		r->job = j;
		r->resume = resume;
		r->gone = gone;
		ask(j, loop, spool);
	}
	buf_fini(&error);
}
