/* SPDX-License-Identifier: ISC */
#include "cmd/relay/requests.h"

#include "base/log.h"
#include "base/text_note.h"
#include "cmd/cmd.h"
#include "cmd/control/dest_job.h"
#include "cmd/control/flow_job.h"
#include "cmd/control/explain_job.h"
#include "cmd/control/milter_job.h"
#include "cmd/control/order_job.h"
#include "cmd/control/queue_job.h"
#include "cmd/relay/late_notes.h"
#include "cmd/relay/node_job.h"
#include "cmd/relay/server.h"
#include "cmd/relay/server_reload.h"
#include "cmd/control/shape_job.h"
#include "cmd/relay/stats_job.h"
#include "cmd/control/suppress_job.h"
#include "cmd/control/user_job.h"
#include "cmd/control/verify_job.h"
#include "cmd/text/node_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void handle_reload(struct server *s, struct request *r)
{
	struct buf says = {0};
	bool done = server_reload(s, &says);
	if (buf_len(&says) > 0)
		control_complain(r, "%s", buf_cstr(&says));
	buf_fini(&says);
	control_finish(r, done ? STATUS_DONE : STATUS_REFUSED);
}

/* From a reload whose configuration has a fault: who has turned the log away needs that all the same. */
static void handle_reopen(struct server *s, struct request *r)
{
	(void)s;
	log_reopen();
	control_finish(r, STATUS_DONE);
}

/* stop [--drain MILLISECONDS] */
static void handle_stop(struct server *s, struct request *r)
{
	if (r->argc > 2 && strcmp(r->argv[1], "--drain") == 0) {
		ending_drain(s, strtoll(r->argv[2], NULL, 10), r);
		return;
	}
	ending_now(s);
	control_finish_last(r, STATUS_DONE);
}

static void handle_restart(struct server *s, struct request *r)
{
	struct buf says = {0};
	bool done = ending_try_restart(s, &says);
	if (buf_len(&says) > 0)
		control_complain(r, "%s", buf_cstr(&says));
	buf_fini(&says);
	if (done)
		ending_await_restart(s, r);
	else
		control_finish(r, STATUS_REFUSED);
}

static void handle_ping(struct server *s, struct request *r)
{
	(void)s;
	control_finish(r, STATUS_DONE);
}

static void handle_queue(struct server *s, struct request *r)
{
	queue_job_start(r, &(struct queue_job_asks){.loop = s->loop,
						    .spool = spool_loop(s->spool),
						    .qmgr = qmgr_loop(s->qmgr),
						    .maildrop = s->maildrop,
						    .conf = s->conf});
}

static struct loop *cluster_of(const struct server *s)
{
	return s->cluster ? cluster_loop(s->cluster) : NULL;
}

static struct order_job_asks asks_of_orders(const struct server *s, enum kept_which which)
{
	return (struct order_job_asks){s->loop, qmgr_loop(s->qmgr), cluster_of(s),
				       &s->kept[which].text};
}

static void handle_dest(struct server *s, struct request *r)
{
	const struct order_job_asks asks = asks_of_orders(s, KEPT_HOSTS);
	dest_job_start(r, &asks);
}

static void handle_user(struct server *s, struct request *r)
{
	const struct user_job_asks asks = {s->loop, limiter_loop(s->limiter), spool_loop(s->spool),
					   cluster_of(s), &s->kept[KEPT_SUSPENDED].text};
	user_job_start(r, &asks);
}

static void handle_flow(struct server *s, struct request *r)
{
	const struct order_job_asks asks = asks_of_orders(s, KEPT_HOSTS);
	flow_job_start(r, &asks);
}

static void handle_verify(struct server *s, struct request *r)
{
	verify_job_start(r, s->loop, qmgr_loop(s->qmgr));
}

static void handle_suppress(struct server *s, struct request *r)
{
	const struct order_job_asks asks = asks_of_orders(s, KEPT_SUPPRESSED);
	suppress_job_start(r, &asks);
}

static void handle_shape(struct server *s, struct request *r)
{
	shape_job_start(r, &(struct shape_job_asks){.loop = s->loop,
						    .spool = spool_loop(s->spool),
						    .maildrop = s->maildrop});
}

static void handle_explain(struct server *s, struct request *r)
{
	explain_job_start(r, s->loop, qmgr_loop(s->qmgr), spool_loop(s->spool));
}

static void handle_milter(struct server *s, struct request *r)
{
	milter_job_start(r, s->loop, s->conf);
}

void requests_handle(void *owner, struct request *r)
{
	static const struct {
		const char *word;
		void (*handle)(struct server *, struct request *);
	} table[] = {{"stats", stats_job_start},    {"reload", handle_reload},
		     {"stop", handle_stop},	    {"queue", handle_queue},
		     {"restart", handle_restart},   {"ping", handle_ping},
		     {"dest", handle_dest},	    {"shape", handle_shape},
		     {"explain", handle_explain},   {"user", handle_user},
		     {"flow", handle_flow},	    {"verify", handle_verify},
		     {"suppress", handle_suppress}, {"milter", handle_milter},
		     {"node", node_job_start},	    {"reopen", handle_reopen}};
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (r->argc > 0 && strcmp(r->argv[0], table[i].word) == 0) {
			table[i].handle(owner, r);
			return;
		}
	}
	control_complain(r, "sluice: the running relay does not know this command\n");
	control_finish(r, STATUS_REFUSED);
}

static void spool_answered(struct note *note)
{
	assert(note->type == SPOOL_COMMAND);
	struct spool_command *c = (struct spool_command *)note;
	if (c->op == SPOOL_SHAPE)
		shape_job_answer(c);
	else if (c->asker == CONTROL_ASKS_EXPLAIN)
		explain_job_shown(c);
	else if (c->asker == CONTROL_ASKS_USER)
		user_job_counted(c);
	else
		queue_job_answer(c);
}

static void order_given(struct cluster_order *o)
{
	if (o->kind == CLUSTER_DEST)
		dest_job_given(o);
	else if (o->kind == CLUSTER_USER)
		user_job_given(o);
	else
		flow_job_given(o);
}

static bool changes_are_kept(const struct server *s)
{
	return !s->kept[KEPT_HOSTS].text && !s->kept[KEPT_SUSPENDED].text;
}

static void note_progress(struct server *s)
{
	char *text = order_progress_take(&s->progress, changes_are_kept(s));
	if (text)
		kept_text_write(&s->kept[KEPT_CLUSTER], text);
	free(text);
}

static void hear_progress(struct server *s, struct text_note *note)
{
	order_progress_said(&s->progress, note->text);
	note_progress(s);
	text_note_free(&note);
}

/* Whoever wants something here is named: else it was wanted of all nodes. */
static void order_answered(struct server *s, const void *owner)
{
	if (s->stopped)
		return;
	if (!owner)
		order_progress_ended(&s->progress);
	note_progress(s);
}

static void dest_answered(struct server *s, struct dest_command *c)
{
	if (c->filters) {
		queue_job_sites(c);
		return;
	}
	order_answered(s, c->owner);
	dest_job_answer(c);
}

static void flow_answered(struct server *s, struct flow_command *c)
{
	order_answered(s, c->owner);
	flow_job_answer(c);
}

static void user_answered(struct server *s, struct limiter_order *o)
{
	order_answered(s, o->owner);
	user_job_answer(o);
}

static void apply_order(struct server *s, struct cluster_order *o)
{
	order_progress_begun(&s->progress);
	if (o->kind == CLUSTER_DEST)
		dest_job_apply(o, s->loop, qmgr_loop(s->qmgr));
	else if (o->kind == CLUSTER_USER)
		user_job_apply(o, s->loop, limiter_loop(s->limiter));
	else
		flow_job_apply(o, s->loop, qmgr_loop(s->qmgr));
	cluster_order_free(&o);
}

/* Each of the two engines knows a part of it: who has which mail, and how much. */
static void count_sums(const struct server *s)
{
	struct node_rows all;
	node_rows_init(&all, s->nodes, s->epochs);
	for (int k = 0; s->nodes && k < NODE_COUNTER_COUNT; k++)
		metric_cell_set(metric_cell(FAMILY_cluster_sum,
					    node_counter_name((enum node_counter)k), NULL),
				all.sum.count[k]);
	node_rows_fini(&all);
}

static void keep_nodes(struct server *s, struct cluster_view *nodes)
{
	cluster_view_free(&s->nodes);
	s->nodes = nodes;
	count_sums(s);
}

static void keep_epochs(struct server *s, struct node_view *epochs)
{
	node_view_keep(&s->epochs, epochs);
	count_sums(s);
}

static void keep_top(struct server *s, struct limiter_top *top)
{
	limiter_top_free(&s->top);
	s->top = top;
}

static void keep_text(struct server *s, enum kept_which which, bool ordered, struct text_note *note)
{
	if (ordered || !s->stopped)
		kept_text_write(&s->kept[which], note->text);
	text_note_free(&note);
}

/* False: the note is another. */
static bool receive_state(struct server *s, struct note *note)
{
	static const struct {
		int type;
		bool ordered;
	} kept[] = {
#define X(which, type, file, ordered) [KEPT_##which] = {type, ordered},
		KEPT_TEXTS(X)
#undef X
	};
	for (int i = 0; i < KEPT_COUNT; i++)
		if (kept[i].type == note->type) {
			keep_text(s, (enum kept_which)i, kept[i].ordered, (struct text_note *)note);
			return true;
		}
	return false;
}

/* Of the other nodes. False: the note is another. */
static bool receive_of_nodes(struct server *s, struct note *note)
{
	switch (note->type) {
	case NODE_ORDER:
		node_job_answer(s, (struct node_order *)note);
		return true;
	case NODE_VIEW:
		keep_epochs(s, (struct node_view *)note);
		return true;
	case NODE_LOST:
		free(note);
		node_job_lost(s);
		return true;
	case CLUSTER_VIEW:
		keep_nodes(s, (struct cluster_view *)note);
		return true;
	case CLUSTER_ORDER:
		order_given((struct cluster_order *)note);
		return true;
	case CLUSTER_APPLY:
		apply_order(s, (struct cluster_order *)note);
		return true;
	case CLUSTER_INQUIRY:
		flow_job_inquired((struct cluster_inquiry *)note);
		return true;
	case CLUSTER_ASKED:
		flow_job_asked((struct cluster_asked *)note, s->loop, qmgr_loop(s->qmgr),
			       cluster_loop(s->cluster));
		return true;
	default:
		return false;
	}
}

void requests_receive(void *server, struct note *note)
{
	struct server *s = server;
	if (s->stopped && late_notes_take(note))
		return;
	if (note->type == CLUSTER_SAVE) {
		hear_progress(s, (struct text_note *)note);
		return;
	}
	if (receive_state(s, note) || receive_of_nodes(s, note))
		return;
	switch (note->type) {
	case DEST_COMMAND:
		dest_answered(s, (struct dest_command *)note);
		break;
	case FLOW_COMMAND:
		flow_answered(s, (struct flow_command *)note);
		break;
	case SUPPRESS_COMMAND:
		suppress_job_answer((struct suppress_command *)note);
		break;
	case MAILDROP_SHAPE:
		shape_job_maildrop((struct maildrop_shape *)note);
		break;
	case MAILDROP_REFILTER:
		queue_job_refiltered((struct refilter *)note);
		break;
	case VERIFY_ANSWER:
		verify_job_answer((struct verify *)note);
		break;
	case LIMITER_ORDER:
		user_answered(s, (struct limiter_order *)note);
		break;
	case LIMITER_TOP:
		keep_top(s, (struct limiter_top *)note);
		break;
	case QMGR_EXPLAIN:
		explain_job_answer((struct explain_question *)note);
		break;
	case QMGR_SNAPSHOT:
		glance_taken(&s->glance, (struct snapshot *)note);
		break;
	default:
		spool_answered(note);
	}
}
