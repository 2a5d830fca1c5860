/* SPDX-License-Identifier: ISC */
#include "tlsrpt/tlsrpt.h"

#include "base/conf_note.h"
#include "base/date.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text_note.h"
#include "spool/spool.h"
#include "tlsrpt/tlsrpt_send.h"
#include "tlsrpt/tlsrpt_text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	TLSRPT_CONF = NOTES_FROM(NOTES_OF_TLSRPT),
	SAVE_MS = 30000,
	TICK_MS = 1000,
	SENDING_MAX = 20,    /* reports at once */
	SPREAD_S = 4 * 3600, /* RFC 8460 4.1: within so long of the day's end */
	KEPT_S = 24 * 3600,  /* and tried for so long after that */
};

static void save_results(void *owner)
{
	struct tlsrpt *t = owner;
	struct buf text = {0};
	assert(t->changed);
	t->changed = false;
	tlsrpt_text_write(&t->tally, &text);
	loop_post(t->edges.main, text_note_new(TLS_RESULTS_SAVE, &text));
}

void tlsrpt_save_soon(struct tlsrpt *t)
{
	if (t->changed)
		return;
	t->changed = true;
	loop_timer_in(t->loop, &t->save, SAVE_MS);
}

/* When it goes out: at random, so that not all the world's reports come at midnight. */
static int64_t due_s(const struct tlsrpt_report *r, int64_t now_s)
{
	int64_t end_s = (r->day + 1) * DAY_S, last_s = end_s + SPREAD_S;
	int64_t first_s = now_s > end_s ? now_s : end_s;
	if (first_s >= last_s)
		return first_s;
	uint64_t chance = keyed_hash(r->key, strlen(r->key));
	return first_s + (int64_t)(chance % (uint64_t)(last_s - first_s));
}

static void forget_report(struct tlsrpt *t, struct tlsrpt_report *r)
{
	tlsrpt_tally_drop(&t->tally, r);
	tlsrpt_save_soon(t);
}

static void look_at_report(struct tlsrpt *t, struct tlsrpt_report *r, int64_t now_s)
{
	int64_t end_s = (r->day + 1) * DAY_S;
	if (r->step != TLSRPT_COUNTING)
		return;
	if (!t->conf->tls_report.enabled) {
		forget_report(t, r);
		return;
	}
	if (now_s < end_s)
		return;
	if (now_s > end_s + SPREAD_S + KEPT_S) {
		log_event(LOG_LEVEL_WARNING, "tls_report", "domain", r->domain, "result",
			  "given_up", NULL);
		forget_report(t, r);
		return;
	}
	if (r->due_s == 0)
		r->due_s = due_s(r, now_s);
	if (now_s >= r->due_s && t->sending < SENDING_MAX)
		tlsrpt_send_begin(t, r);
}

static void look_at_all(struct tlsrpt *t)
{
	int64_t now_s = date_ms() / 1000;
	hash_each (struct tlsrpt_report, r, t->tally.reports)
		look_at_report(t, r, now_s);
}

static void on_tick(void *owner)
{
	struct tlsrpt *t = owner;
	look_at_all(t);
	loop_timer_in(t->loop, &t->tick, TICK_MS);
}

static void count_result(struct tlsrpt *t, const struct tls_result *r)
{
	if (!t->conf->tls_report.enabled)
		return;
	tlsrpt_tally_add(&t->tally, date_ms() / 1000 / DAY_S, r);
	tlsrpt_save_soon(t);
}

static void use_conf(struct tlsrpt *t, struct conf *new)
{
	conf_unref(t->conf);
	t->conf = new;
	tls_report_names(new, t->hostname, t->from);
}

static void receive_note(void *owner, struct note *n)
{
	struct tlsrpt *t = owner;
	struct tls_result *result = (struct tls_result *)n;
	switch (n->type) {
	case TLSRPT_CONF:
		use_conf(t, conf_note_take(n));
		look_at_all(t);
		break;
	case TLS_RESULT:
		count_result(t, result);
		tls_result_free(&result);
		break;
	case RESOLVE_ANSWER:
		tlsrpt_send_resolved(t, (struct resolve *)n);
		break;
	case SPOOL_STORED:
		tlsrpt_send_stored(t, (struct spool_store *)n);
		break;
	default:
		assert(0 && "a note that tlsrpt does not know");
	}
}

struct tlsrpt *tlsrpt_new(struct conf *conf, const struct tlsrpt_edges *edges)
{
	struct tlsrpt *t = mem_zalloc(sizeof *t);
	t->loop = loop_new("tlsrpt", receive_note, NULL, t);
	t->edges = *edges;
	t->https = https_new(t->loop);
	use_conf(t, conf_ref(conf));
	timer_init(&t->save, save_results, t);
	timer_init(&t->tick, on_tick, t);
	loop_timer_in(t->loop, &t->tick, TICK_MS);
	return t;
}

void tlsrpt_recall(struct tlsrpt *t, const char *text)
{
	assert(!t->loop->running);
	tlsrpt_text_read(&t->tally, text);
}

void tlsrpt_start(struct tlsrpt *t)
{
	loop_start(t->loop);
}

void tlsrpt_stop(struct tlsrpt *t)
{
	loop_stop(t->loop);
	/* Notes of connections that have ended since still count. */
	mailbox_drain(&t->loop->mailbox);
}

void tlsrpt_learnt(struct tlsrpt *t, struct buf *to)
{
	assert(!t->loop->running);
	tlsrpt_text_write(&t->tally, to);
}

void tlsrpt_free(struct tlsrpt **tp)
{
	struct tlsrpt *t = *tp;
	if (!t)
		return;
	loop_stop(t->loop);
	for (struct tlsrpt_report *r = t->tally.reports; r; r = r->hh.next)
		tlsrpt_send_drop(r);
	https_free(&t->https);
	tlsrpt_tally_fini(&t->tally);
	timer_stop(&t->loop->timers, &t->save);
	timer_stop(&t->loop->timers, &t->tick);
	loop_free(&t->loop);
	conf_unref(t->conf);
	free(t);
	*tp = NULL;
}

struct loop *tlsrpt_loop(struct tlsrpt *t)
{
	return t->loop;
}

void tlsrpt_reload(struct tlsrpt *t, struct conf *conf)
{
	conf_note_post(t->loop, TLSRPT_CONF, conf);
}
