/* SPDX-License-Identifier: ISC */
#include "cmd/control/shape_job.h"

#include "base/magic.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/control/order_job.h"
#include "cmd/maildrop/maildrop_count.h"
#include "cmd/text/shape_args.h"
#include "cmd/text/shape_print.h"
#include "spool/shape.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS_AT_ONCE = 500, STEP = 500 };

enum { SHAPE_JOB_MAGIC = 0x5ba9e0b1 };

struct shape_job {
	unsigned magic;
	struct request *request; /* NULL: the client has gone */
	struct shape_args args;
	struct loop *loop, *spool;
	struct spool_command *answer; /* NULL: the spool, or the maildrop, has it */
	uint64_t after;		      /* the last message that was counted */
	bool complete;		      /* all that was asked for is counted */
	bool no_maildrop;	      /* what is in there is not */
	struct queue_unread unread;   /* whose they are can't be said */
	struct shape_view view;
	size_t next; /* row */
	int shown;   /* lines below the heading */
};

static void job_free(struct shape_job *j)
{
	spool_command_free(&j->answer);
	magic_free(j);
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
	struct buf out = {0};
	for (int n = 0; n < ROWS_AT_ONCE && j->next < s->n; n++)
		put_row(j, &s->row[j->next++], &out);
	control_say(j->request, buf_data(&out), buf_len(&out));
	buf_fini(&out);
}

static void ask_spool(struct shape_job *, struct shape *);

static void go_on(struct shape_job *j)
{
	while (j->next < j->view.shape->n) {
		if (control_full(j->request))
			return;
		put_rows(j);
	}
	if (!j->complete) {
		struct shape *shape = j->answer->shape;
		j->answer->shape = NULL;
		spool_command_free(&j->answer);
		ask_spool(j, shape);
		return;
	}
	struct request *r = j->request;
	bool whole = order_job_has_read(r, &j->unread) && !j->no_maildrop;
	job_free(j);
	control_finish(r, whole ? STATUS_DONE : STATUS_REFUSED);
}

static void resume_job(struct request *r)
{
	struct shape_job *j = r->job;
	if (j->answer)
		go_on(j);
}

static void on_client_gone(struct request *r)
{
	struct shape_job *j = r->job;
	j->request = NULL;
	if (j->answer)
		job_free(j);
}

/* The row of all counts as a line, as qshape has it. A table that is not the last is drawn over. */
static void begin_answer(struct shape_job *j)
{
	struct buf out = {0};
	j->shown = 1;
	j->next = 0;
	if (j->args.redraw && j->args.batch > 0)
		buf_puts(&out, "\033[H\033[J");
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
	assert(!j->answer);
	j->answer = c;
	if (!j->request) {
		job_free(j);
		return;
	}
	j->after = c->after;
	j->complete = !c->more;
	queue_unread_add(&j->unread, c);
	bool draws = j->complete || (j->args.redraw && j->args.batch > 0);
	shape_view_init(&j->view, c->shape, j->args.minutes, j->args.width, j->args.color);
	if (draws)
		begin_answer(j);
	else
		j->next = c->shape->n;
	go_on(j);
}

/* A part of the queue, where parts are shown, or envelopes may have to be read; else all of it. */
static void ask_spool(struct shape_job *j, struct shape *shape)
{
	struct spool_command *c = spool_command_new(SPOOL_SHAPE, j->loop, j);
	c->shape = shape;
	c->after = j->after;
	c->limit = j->args.redraw ? j->args.batch : 0;
	if (shape->nfrom + shape->nflow > 0 && (c->limit == 0 || c->limit > STEP))
		c->limit = STEP;
	loop_post(j->spool, &c->note);
}

static void complain_of_maildrop(struct shape_job *j, int error)
{
	j->no_maildrop = true;
	control_complain(j->request, "sluice: the maildrop cannot be read: %s\n", strerror(error));
}

void shape_job_maildrop(struct maildrop_shape *s)
{
	struct shape_job *j = s->owner;
	struct shape *shape = s->shape;
	int error = s->error;
	free(s);
	if (!j->request) {
		shape_free(&shape);
		job_free(j);
		return;
	}
	if (error)
		complain_of_maildrop(j, error);
	ask_spool(j, shape);
}

static struct shape *make_shape(const struct shape_args *a)
{
	struct shape *s = shape_new();
	s->senders = a->senders;
	s->parents = a->parents;
	s->linear = a->linear;
	s->buckets = a->buckets;
	s->first_ms = (int64_t)(a->minutes * 60000 + 0.5);
	s->queues = a->queues;
	for (int i = 0; i < a->nfrom; i++)
		shape_want_sender(s, a->from[i]);
	for (int i = 0; i < a->nflow; i++)
		shape_want_flow(s, a->flow[i]);
	return s;
}

static void begin_job(struct shape_job *j, const struct shape_job_asks *asks)
{
	struct shape *shape = make_shape(&j->args);
	j->loop = asks->loop;
	j->spool = asks->spool;
	if (j->args.maildrop && asks->maildrop) {
		maildrop_ask_shape(asks->maildrop, shape, j->loop, j);
		return;
	}
	if (j->args.maildrop && !maildrop_count(asks->folder, shape))
		complain_of_maildrop(j, errno);
	ask_spool(j, shape);
}

void shape_job_start(struct request *r, const struct shape_job_asks *asks)
{
	struct shape_job *j = mem_zalloc(sizeof *j);
	struct buf error = {0};
	if (!shape_args_parse(&j->args, r->argc, r->argv, &error) || j->args.help) {
		control_complain(r, "sluice: %s\n", buf_cstr(&error));
		free(j);
		control_finish(r, STATUS_USAGE);
	} else {
		j->magic = SHAPE_JOB_MAGIC;
		j->request = r;
		r->job = j;
		r->resume = resume_job;
		r->gone = on_client_gone;
		begin_job(j, asks);
	}
	buf_fini(&error);
}
