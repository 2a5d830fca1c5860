/* SPDX-License-Identifier: ISC */
#include "cmd/control/queue_job.h"

#include "base/clock.h"
#include "base/fence.h"
#include "base/ident.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "cmd/cmd.h"
#include "cmd/control/order_job.h"
#include "cmd/maildrop/refilter.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

enum { TELL_MS = 1000 };

static void ask_spool(struct queue_job *j, enum spool_order op, uint64_t id, uint64_t after,
		      int limit)
{
	assert(j->request);
	struct spool_command *c = spool_command_new(op, j->loop, j);
	c->id = id;
	c->after = after;
	c->limit = limit;
	c->fresh = j->args.fresh;
	c->held_too = j->args.nid > 0 || j->args.filter.queues == 1u << SPOOL_HOLD;
	c->held_only = j->args.refilter;
	j->in_flight++;
	loop_post(j->spool, &c->note);
}

static bool is_change(const struct queue_job *j)
{
	return j->args.verb >= QUEUE_FLUSH;
}

/* The words for messages that stayed as they were, and how many these are. */
static const char *unmoved_words(const struct queue_job *j, enum spool_unmoved why)
{
	static const char *const words[] = {
		[SPOOL_NOT_HELD] = "not held",
		[SPOOL_AT_WORK] = "being tried already",
		[SPOOL_STUCK] = "left, for the disk of the queue fails, or is damaged",
		[SPOOL_ADOPTING] = "being taken from another node",
		[SPOOL_MISSING] = "not found",
		[SPOOL_REPLACED] = "just being changed by filters",
		[SPOOL_SCHEDULED] =
			"to be sent at a time that its sender has set, unless it is named",
	};
	if (why == SPOOL_HELD)
		return j->args.verb == QUEUE_HOLD ? "held already" : "on hold, which release ends";
	assert(why < SPOOL_UNMOVED && words[why]);
	return words[why];
}

/* Of messages that a filter found, one may be gone by now; of those named, it is an error. */
static void not_moved(struct queue_job *j, const char *id, enum spool_unmoved why)
{
	control_complain(j->request, "sluice: %s: %s\n", id,
			 why == SPOOL_MISSING ? "no such message in the queue"
					      : unmoved_words(j, why));
	j->status = STATUS_REFUSED;
}

/* The message is there, and what becomes of it is seen when it is due. */
static void not_readable(struct queue_job *j, uint64_t id, int error)
{
	char text[IDENT_TEXT];
	control_complain(j->request, "sluice: %s: cannot be read from the queue: %s\n",
			 ident_text(id, text), queue_print_error(error));
	j->status = STATUS_REFUSED;
}

static void not_found(struct queue_job *j, const char *id)
{
	j->unmoved[SPOOL_MISSING]++;
	not_moved(j, id, SPOOL_MISSING);
	uint64_t number;
	if (j->args.verb == QUEUE_SHOW && ident_parse(id, &number))
		control_complain(j->request, "sluice: what has become of it: sluice trace %s\n",
				 id);
}

static void ask_by_id(struct queue_job *j)
{
	while (j->next_id < j->args.nid && j->in_flight < QUEUE_PAGE) {
		const char *text = j->args.id[j->next_id++];
		uint64_t id;
		if (!ident_parse(text, &id) || id == 0)
			not_found(j, text);
		else if (j->args.refilter)
			queue_refilter_add(j, id);
		else if (is_change(j))
			ask_spool(j, queue_verbs[j->args.verb].order, id, 0, 0);
		else if (j->args.verb == QUEUE_SHOW)
			ask_spool(j, SPOOL_SHOW, id, 0, 0);
		else
			ask_spool(j, SPOOL_LIST, id, 0, 1);
	}
	j->complete = j->next_id == j->args.nid;
}

static void ask_next(struct queue_job *j)
{
	if (j->args.nid > 0) {
		ask_by_id(j);
	} else if (j->args.all && is_change(j) && !j->args.refilter) {
		ask_spool(j, queue_verbs[j->args.verb].order, 0, 0, 0);
		j->complete = true;
	} else {
		ask_spool(j, SPOOL_LIST, 0, j->after, QUEUE_PAGE);
	}
}

static void put_unmoved(struct buf *to, const struct queue_job *j)
{
	const char *between = "";
	for (int why = 0; why < SPOOL_UNMOVED; why++) {
		if (j->unmoved[why] == 0)
			continue;
		buf_printf(to, "%s%" PRId64 " %s", between, j->unmoved[why],
			   unmoved_words(j, (enum spool_unmoved)why));
		between = ", ";
	}
	if (*between)
		buf_puts(to, "\n");
}

/* Done, but perhaps not for long. */
static void undone_later(struct queue_job *j, const char *how)
{
	control_complain(j->request, "sluice: %s\n", how);
	j->status = STATUS_REFUSED;
}

/* Nobody can tell whether they were meant. */
static void say_unread(struct queue_job *j)
{
	if (!order_job_has_read(j->request, &j->unread))
		j->status = STATUS_REFUSED;
}

static void say_total(struct queue_job *j)
{
	struct buf text = {0};
	if (j->args.verb == QUEUE_LIST && !j->args.json)
		queue_print_summary(&text, j->messages, j->bytes);
	else if (is_change(j))
		buf_printf(&text, "%" PRId64 " message%s %s\n", j->messages,
			   j->messages == 1 ? "" : "s", queue_verbs[j->args.verb].done);
	if (j->cancelled > 0)
		buf_printf(&text, "%" PRId64 " of them when what is under way has ended\n",
			   j->cancelled);
	queue_refilter_total(j, &text);
	if (is_change(j))
		put_unmoved(&text, j);
	control_say(j->request, buf_data(&text), buf_len(&text));
	buf_fini(&text);
	say_unread(j);
	if (j->unsafe)
		undone_later(j, "the disk of the queue fails: a crash now would undo this");
	else if (j->uncopied)
		undone_later(j, "NATS is away, and knows nothing of this: a node that adopts this "
				"queue before it is back would undo it");
}

/* An order on all messages is one step of the spool, which says only in the end how many they were. */
static void tell_progress(void *owner)
{
	struct queue_job *j = owner;
	int64_t in_queue = metrics_sum(METRIC_queue_incoming) + metrics_sum(METRIC_queue_active) +
			   metrics_sum(METRIC_queue_deferred) + metrics_sum(METRIC_queue_hold);
	if (!j->request)
		return;
	if (j->args.all && !j->args.refilter)
		control_progress(j->request, "%" PRId64 " messages in the queue", in_queue);
	else
		control_progress(j->request, "%" PRId64 " messages %s, of %" PRId64, j->messages,
				 queue_verbs[j->args.verb].done, in_queue);
	loop_timer_in(j->loop, &j->tell, TELL_MS);
}

static void job_free(struct queue_job *j)
{
	assert(j->in_flight == 0 && !j->request);
	timer_stop(&j->loop->timers, &j->tell);
	spool_command_free(&j->shown);
	queue_sites_free(&j->sites);
	queue_args_fini(&j->args);
	free(j->refilter.id);
	conf_unref(j->conf);
	magic_free(j);
}

static void finish_job(struct queue_job *j)
{
	struct request *r = j->request;
	j->request = NULL;
	control_finish(r, j->status);
	job_free(j);
}

static void refilter_some(struct queue_job *j)
{
	uint64_t id;
	while (j->request && queue_refilter_next(j, &id))
		ask_spool(j, SPOOL_SHOW, id, 0, 0);
}

/* The one place that decides what comes next. */
static void go_on(struct queue_job *j)
{
	refilter_some(j);
	if (j->in_flight > 0)
		return;
	if (!j->request) {
		job_free(j);
		return;
	}
	if (j->shown && !queue_show_more(j))
		return;
	if (!j->complete && control_full(j->request))
		return;
	if (!j->complete)
		ask_next(j);
	refilter_some(j);
	if (j->in_flight == 0 && j->complete) {
		say_total(j);
		finish_job(j);
	}
}

static void resume_job(struct request *r)
{
	go_on(r->job);
}

static void on_client_gone(struct request *r)
{
	struct queue_job *j = r->job;
	j->request = NULL;
	go_on(j);
}

static void take_row(struct queue_job *j, const struct spool_row *row, int64_t now_ms,
		     struct buf *out)
{
	if (!queue_filter_match(&j->args.filter, j->sites, row, now_ms))
		return;
	if (j->args.refilter) {
		if (ident_time_ms(row->envelope->id) <= j->refilter.until_ms)
			queue_refilter_add(j, row->envelope->id);
		return;
	}
	if (is_change(j)) {
		ask_spool(j, queue_verbs[j->args.verb].order, row->envelope->id, 0, 0);
		return;
	}
	j->messages++;
	j->bytes += row->envelope->size;
	if (j->args.json)
		queue_print_json(out, row);
	else
		queue_print_line(out, row, now_ms);
}

/* A message that was asked about by its id. */
static void not_listed(struct queue_job *j, const struct spool_command *c)
{
	char text[IDENT_TEXT];
	if (c->error)
		not_readable(j, c->id, c->error);
	else
		not_found(j, ident_text(c->id, text));
}

static void take_end_of_page(struct queue_job *j, const struct spool_command *c)
{
	j->after = c->after;
	j->complete = c->nrow == 0;
	queue_unread_add(&j->unread, c);
}

static void take_page(struct queue_job *j, const struct spool_command *c)
{
	struct buf out = {0};
	int64_t now_ms = clock_wall_ms();
	for (int i = 0; i < c->nrow; i++)
		take_row(j, &c->row[i], now_ms, &out);
	if (c->id != 0 && c->nrow == 0)
		not_listed(j, c);
	if (c->id == 0)
		take_end_of_page(j, c);
	control_say(j->request, buf_data(&out), buf_len(&out));
	buf_fini(&out);
}

static void take_change(struct queue_job *j, const struct spool_command *c)
{
	assert(is_change(j));
	char text[IDENT_TEXT];
	*(c->op == SPOOL_DELETE && j->args.refilter ? &j->refilter.deleted : &j->messages) +=
		c->affected;
	j->cancelled += c->cancelled;
	j->unsafe |= c->unsafe;
	j->uncopied |= c->uncopied;
	for (int why = 0; why < SPOOL_UNMOVED; why++) {
		j->unmoved[why] += c->unmoved[why];
		if (j->args.nid > 0 && c->unmoved[why] > 0)
			not_moved(j, ident_text(c->id, text), (enum spool_unmoved)why);
	}
}

static void take_shown(struct queue_job *j, struct spool_command *c)
{
	char text[IDENT_TEXT];
	enum spool_unmoved why = queue_refilter_shown(j, c);
	if (why == SPOOL_UNMOVED)
		return;
	j->unmoved[why]++;
	if (j->args.nid > 0)
		not_moved(j, ident_text(c->id, text), why);
}

void queue_job_refiltered(struct refilter *r)
{
	struct queue_job *j = r->owner;
	magic_check(j, QUEUE_JOB_MAGIC);
	assert(j->in_flight > 0);
	j->in_flight--;
	enum spool_order op = j->request ? queue_refilter_answered(j, r) : SPOOL_SHOW;
	if (op != SPOOL_SHOW)
		ask_spool(j, op, r->envelope->id, 0, 0);
	refilter_free(&r);
	go_on(j);
}

void queue_job_answer(struct spool_command *c)
{
	struct queue_job *j = c->owner;
	magic_check(j, QUEUE_JOB_MAGIC);
	assert(j->in_flight > 0);
	j->in_flight--;
	if (j->request && c->op == SPOOL_LIST) {
		take_page(j, c);
	} else if (j->request && c->op == SPOOL_SHOW && j->args.refilter) {
		take_shown(j, c);
	} else if (j->request && c->op == SPOOL_SHOW) {
		if (c->nrow > 0) {
			queue_show_begin(j, c);
			c = NULL;
		} else {
			not_listed(j, c);
		}
	} else if (j->request) {
		take_change(j, c);
	}
	spool_command_free(&c);
	go_on(j);
}

void queue_job_sites(struct dest_command *c)
{
	struct queue_job *j = c->owner;
	magic_check(j, QUEUE_JOB_MAGIC);
	assert(j->in_flight > 0);
	j->in_flight--;
	queue_sites_learn(j->sites, c);
	dest_command_free(&c);
	go_on(j);
}

/* Who goes there? */
static void ask_for_sites(struct queue_job *j, struct loop *qmgr)
{
	const struct queue_values *v = &j->args.filter.values[QUEUE_BY_SITE];
	if (v->n == 0)
		return;
	j->sites = queue_sites_new(j->conf, v->of, v->n);
	for (int i = 0; qmgr && i < v->n; i++) {
		struct dest_command *c = dest_command_new(ORDER_LIST, v->of[i], j->loop, j);
		c->filters = true;
		j->in_flight++;
		loop_post(qmgr, &c->note);
	}
}

static bool parse_request(struct queue_job *j, struct request *r)
{
	struct buf error = {0};
	bool ok = queue_args_parse(&j->args, r->argc, r->argv, &error) && !j->args.help;
	if (ok && j->args.verb == QUEUE_CHECK) {
		buf_puts(&error, "a running relay does not check its queue");
		ok = false;
	}
	if (!ok)
		control_complain(r, "sluice: %s\n", buf_cstr(&error));
	buf_fini(&error);
	return ok;
}

/* Of a queue that another node may have, an order would say that it is done, and that one would send the mail. */
static bool may_start(struct queue_job *j)
{
	const char *wrong = j->args.refilter ? queue_refilter_refused(j) : NULL;
	j->status = wrong ? STATUS_REFUSED : STATUS_DONE;
	if (!wrong && is_change(j) && !fence_open()) {
		wrong = "this node has no epoch now, and another may have its queue: nothing was "
			"changed; sluice node list says who has it";
		j->status = STATUS_UNREACHABLE;
	}
	if (wrong)
		control_complain(j->request, "sluice: %s\n", wrong);
	return !wrong;
}

void queue_job_start(struct request *r, const struct queue_job_asks *asks)
{
	struct queue_job *j = mem_zalloc(sizeof *j);
	if (!parse_request(j, r)) {
		queue_args_fini(&j->args);
		free(j);
		control_finish(r, STATUS_USAGE);
		return;
	}
	j->magic = QUEUE_JOB_MAGIC;
	j->request = r;
	j->loop = asks->loop;
	j->spool = asks->spool;
	j->conf = conf_ref(asks->conf);
	j->maildrop = asks->maildrop;
	j->refilter.until_ms = clock_wall_ms();
	r->job = j;
	r->resume = resume_job;
	r->gone = on_client_gone;
	timer_init(&j->tell, tell_progress, j);
	if (!may_start(j)) {
		finish_job(j);
		return;
	}
	if (r->progress && is_change(j))
		loop_timer_in(j->loop, &j->tell, TELL_MS);
	ask_for_sites(j, asks->qmgr);
	go_on(j);
}
