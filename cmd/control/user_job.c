/* SPDX-License-Identifier: ISC */
#include "cmd/control/user_job.h"

#include "base/clock.h"
#include "base/magic.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/control/order_job.h"
#include "cmd/text/order_print.h"
#include "cmd/text/queue_filter.h"
#include "cmd/text/user_args.h"
#include "cmd/text/user_print.h"

#include <assert.h>
#include <stdlib.h>

enum { USER_JOB_MAGIC = 0x05e70b01, COUNTED_AT_ONCE = 500 };

struct user_job {
	unsigned magic;
	struct request *request; /* NULL: the client has gone */
	struct user_job_asks asks;
	struct order_args args; /* without what points into the request */

	/* show of one login, while its mail is counted: */
	struct limiter_order *found;
	struct queue_filter filter; /* its name is that of found */
	int64_t queued;
	struct queue_unread unread; /* whose they are can't be said */
};

void user_job_start(struct request *r, const struct user_job_asks *asks)
{
	struct user_args args;
	struct buf error = {0};
	bool parsed = user_args_parse(&args, r->argc, r->argv, &error);
	bool begins = order_job_begins(r, &args.order, parsed, asks->cluster, &error);
	buf_fini(&error);
	if (!begins)
		return;
	struct user_job *j = mem_zalloc(sizeof *j);
	j->magic = USER_JOB_MAGIC;
	j->asks = *asks;
	j->queued = USER_PRINT_UNCOUNTED;
	j->args = args.order;
	j->args.name = j->args.conf_file = NULL;
	control_lend(r, &j->request);
	if (args.order.cluster)
		loop_post(asks->cluster, &cluster_order_new(CLUSTER_USER, args.order.verb,
							    args.login, asks->loop, j)
						  ->note);
	else
		loop_post(asks->limiter,
			  &limiter_order_new(args.order.verb, *args.login ? args.login : NULL,
					     asks->loop, j)
				   ->note);
}

static struct limiter_order *order_of(const struct cluster_order *o, struct loop *loop, void *job)
{
	return limiter_order_new(o->verb, o->name, loop, job);
}

void user_job_given(struct cluster_order *o)
{
	struct user_job *j = o->owner;
	magic_check(j, USER_JOB_MAGIC);
	if (!o->why) {
		loop_post(j->asks.limiter, &order_of(o, j->asks.loop, j)->note);
	} else {
		order_job_nothing_done(j->request, o->why);
		magic_free(j);
	}
	cluster_order_free(&o);
}

void user_job_apply(const struct cluster_order *o, struct loop *loop, struct loop *limiter)
{
	loop_post(limiter, &order_of(o, loop, NULL)->note);
}

static void say_answer(struct request *r, const struct user_job *j, const struct limiter_order *o)
{
	struct buf out = {0};
	if (order_changes(o->op) && j->args.json)
		order_print_json(&out, "login", o->name, o->op, 0);
	else if (order_changes(o->op))
		user_print_done(&out, o);
	else if (j->args.json)
		user_print_json(&out, o, j->queued);
	else if (j->args.verb == ORDER_SHOW)
		user_print_full(&out, o, j->queued);
	else
		user_print_list(&out, o);
	control_say(r, buf_data(&out), buf_len(&out));
	buf_fini(&out);
}

static bool is_whole(const struct user_job *j, const struct limiter_order *o)
{
	bool read = order_job_has_read(j->request, &j->unread);
	return order_job_is_kept(j->request, o->op, j->asks.unkept) && read;
}

static void finish_job(struct user_job *j, struct limiter_order *o)
{
	struct request *r = j->request;
	bool missing = o->name && !o->found && !j->args.cluster;
	if (r && missing)
		control_complain(r, "sluice: %s: %s\n", o->name,
				 o->op == ORDER_RESUME ? "not suspended"
						       : "no such login was seen");
	else if (r)
		say_answer(r, j, o);
	if (r)
		control_finish(r, !missing && is_whole(j, o) ? STATUS_DONE : STATUS_REFUSED);
	magic_free(j);
	limiter_order_free(&o);
}

static void ask_page(struct user_job *j, uint64_t after)
{
	struct spool_command *c = spool_command_new(SPOOL_LIST, j->asks.loop, j);
	c->asker = CONTROL_ASKS_USER;
	c->after = after;
	c->limit = COUNTED_AT_ONCE;
	loop_post(j->asks.spool, &c->note);
}

static void begin_count(struct user_job *j, struct limiter_order *o)
{
	assert(!j->found);
	struct buf error = {0};
	j->found = o;
	j->queued = 0;
	queue_filter_init(&j->filter);
	queue_filter_add(&j->filter, QUEUE_BY_LOGIN, o->name, &error);
	buf_fini(&error);
	ask_page(j, 0);
}

void user_job_counted(struct spool_command *c)
{
	struct user_job *j = c->owner;
	magic_check(j, USER_JOB_MAGIC);
	assert(j->found);
	uint64_t last = c->after;
	queue_unread_add(&j->unread, c);
	for (int i = 0; i < c->nrow; i++) {
		last = c->row[i].envelope->id > last ? c->row[i].envelope->id : last;
		j->queued += queue_filter_match(&j->filter, NULL, &c->row[i], clock_wall_ms());
	}
	if (c->nrow > 0 && j->request) {
		ask_page(j, last);
	} else {
		queue_filter_fini(&j->filter);
		finish_job(j, j->found);
	}
	spool_command_free(&c);
}

void user_job_answer(struct limiter_order *o)
{
	struct user_job *j = o->owner;
	if (!j) { /* another node's operator has wanted it */
		limiter_order_free(&o);
		return;
	}
	magic_check(j, USER_JOB_MAGIC);
	if (j->request && !order_changes(o->op) && o->name && o->found &&
	    j->args.verb == ORDER_SHOW)
		begin_count(j, o);
	else
		finish_job(j, o);
}
