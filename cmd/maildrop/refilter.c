/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/refilter.h"

#include "base/dkim_rows.h"
#include "base/clock.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/maildrop/maildrop.h"
#include "dkim/dkim.h"
#include "smtpd/filter_mail.h"
#include "spool/content_writer.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64 << 10, COPYING_MAGIC = 0xc09e0d11 };

/* The content on its way from the queue to the draft; the note may be gone before the pool is done. */
struct copying {
	unsigned magic;
	struct content *from;
	int error;
};

struct refilter *refilter_new(struct loop *reply_to, void *owner)
{
	struct refilter *r = mailbox_note(sizeof *r, MAILDROP_REFILTER);
	r->magic = REFILTER_MAGIC;
	r->reply_to = reply_to;
	r->owner = owner;
	return r;
}

static void end_passage(struct refilter *r)
{
	passage_cancel(&r->passage);
	if (r->filters)
		filter_mail_fini(r->filters);
	mem_free(&r->filters);
	resign_fini(&r->resign);
}

void refilter_free(struct refilter **rp)
{
	struct refilter *r = mem_take(rp);
	if (!r)
		return;
	magic_check(r, REFILTER_MAGIC);
	assert(!r->passage && !r->filters);
	envelope_free(&r->envelope);
	content_unref(r->content);
	free(r->says);
	magic_free(r);
}

static void log_refiltered(const struct refilter *r)
{
	static const char *const words[] = {[REFILTER_PASSED] = "passed",
					    [REFILTER_REPLACED] = "changed",
					    [REFILTER_DISCARDED] = "discarded",
					    [REFILTER_HELD] = "held"};
	assert((size_t)r->end < sizeof words / sizeof *words);
	log_event(LOG_LEVEL_INFO, "refiltered", "id", log_id(r->envelope->id), "result",
		  words[r->end], "as", r->as ? log_id(r->as) : NULL, "reason", r->says, NULL);
}

static void answer_asker(struct refilter *r, enum refilter_end end, const char *says)
{
	end_passage(r);
	assert(!r->says);
	r->end = end;
	r->says = says ? mem_strdup(says) : NULL;
	log_refiltered(r);
	loop_post(r->reply_to, &r->note);
}

/* Of one that passes. */
static void conclude_passing(struct refilter *r, enum refilter_end end, const char *says)
{
	list_remove(&r->link);
	assert(r->all->npassing > 0);
	r->all->npassing--;
	answer_asker(r, end, says);
}

static int copy_content(const struct content *from, struct content_writer *to)
{
	char *piece = mem_alloc(PIECE);
	uint32_t sum = 0;
	ssize_t n;
	uint64_t at = 0;
	bool intact = true;
	while (intact && (n = content_read(from, at, piece, PIECE)) > 0) {
		intact = content_intact(from, &sum, at, piece, (size_t)n);
		content_writer_put(to, piece, (size_t)n);
		at += (uint64_t)n;
	}
	int error = !intact || n < 0 ? errno : at < from->size ? EBADMSG : 0;
	free(piece);
	content_writer_finish(to);
	return error ? error : to->error;
}

static void fetch_work(struct passage *p)
{
	struct copying *c = p->at_work;
	struct content_writer to;
	magic_check(c, COPYING_MAGIC);
	content_writer_init(&to, p->draft.spool, p->draft.id);
	c->error = copy_content(c->from, &to);
	if (!c->error)
		p->draft.size = content_writer_take(&to, &p->draft.content, &p->draft.file);
	content_writer_fini(&to);
}

static void copying_free(struct copying *c)
{
	magic_check(c, COPYING_MAGIC);
	content_unref(c->from);
	magic_free(c);
}

static void fetch_cancel(struct passage *p)
{
	copying_free(p->at_work);
}

static void fetch_worked(struct passage *p)
{
	struct copying *c = p->at_work;
	int error = c->error;
	copying_free(c);
	if (error)
		passage_fail(p, error);
	else
		passage_next(p);
}

/* Large content is copied by the pool: the filters of others are served meanwhile. */
static void fetch_begin(struct passage *p)
{
	const struct refilter *r = passage_context(p);
	struct copying *c = mem_zalloc(sizeof *c);
	c->magic = COPYING_MAGIC;
	c->from = content_ref(r->content);
	p->at_work = c;
	if (c->from->size <= SPOOL_CONTENT_INLINE_MAX) {
		fetch_work(p);
		fetch_worked(p);
	} else if (!passage_give(p, fetch_work)) {
		copying_free(c);
		passage_fail(p, ECANCELED);
	}
}

static const struct passage_stage fetch = {
	.begin = fetch_begin, .worked = fetch_worked, .cancel = fetch_cancel};

static void add_recipient(struct envelope *to, const struct recipient *r)
{
	struct recipient *new = envelope_add(to, r->address);
	new->orcpt = r->orcpt ? mem_strdup(r->orcpt) : NULL;
	new->notify = r->notify;
}

/* The recipients that are left, as if the message had just come. */
static struct envelope *new_envelope(const struct refilter *r)
{
	const struct envelope *e = r->envelope;
	struct envelope *new = envelope_new();
	new->arrived_ms = r->fresh ? clock_wall_ms() : e->arrived_ms;
	new->warned = e->warned && !r->fresh;
	new->sender = mem_strdup(e->sender);
	new->flow = mem_strdup(envelope_flow(e));
	envelope_came_from(new, e->user, e->client);
	new->envid = e->envid ? mem_strdup(e->envid) : NULL;
	new->ret = e->ret;
	new->body = e->body;
	new->tls = e->tls;
	new->by = e->by;
	new->priority = e->priority;
	new->by_ms = e->by_ms;
	new->not_before_ms = e->not_before_ms;
	new->hold_asked = e->hold_asked;
	new->hold_for = e->hold_for;
	new->smtputf8 = e->smtputf8;
	new->archive = e->archive;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (!e->rcpt[i].done)
			add_recipient(new, &e->rcpt[i]);
	return new;
}

/* After a crash: it was sent, or refused for good, and its sender is not told yet. */
static bool owes_report(const struct envelope *e)
{
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		const struct recipient *r = &e->rcpt[i];
		if (!r->done && r->last &&
		    (r->last->class == VERDICT_SENT || r->last->class == VERDICT_FAILED))
			return true;
	}
	return false;
}

static void add_filters(struct refilter *r, const struct take_means *with)
{
	const struct filter_owner owner = {.hostname = with->conf->own_name,
					   .daemon = "refilter",
					   .id = r->envelope->id,
					   .maps = with->maps,
					   .patient = true};
	r->filters = mem_zalloc(sizeof *r->filters);
	filter_mail_init(r->filters, with->milters, with->conf, &owner);
	milter_chain_insist(r->filters->chain);
	for (int i = 0; i < with->conf->nmilter; i++)
		milter_chain_add(r->filters->chain, &with->conf->milter[i]);
	filter_mail_stage(r->filters, r->passage);
}

static struct log_held *hold_log(const struct refilter *r, const struct passage *p)
{
	const struct envelope *e = p->draft.envelope;
	return log_hold(LOG_LEVEL_INFO, "queued", "id", log_id(p->draft.id), "from", e->sender,
			"nrcpt", log_number(e->nrcpt), "size", log_number((int64_t)p->draft.size),
			"flow", envelope_flow(e), "refilter_of", log_id(r->envelope->id), "signed",
			p->signed_by, NULL);
}

static void store_changed(struct refilter *r, struct passage *p)
{
	struct spool_store *ask = mailbox_note(sizeof *ask, SPOOL_STORE);
	ask->reply_to = p->loop;
	ask->owner = r;
	ask->replaces = r->envelope->id;
	ask->generation = r->generation;
	ask->log = hold_log(r, p);
	draft_give(&p->draft, ask);
	loop_post(spool_loop(p->draft.spool), &ask->note);
}

/* REFILTER_REPLACED: if it can be stored. */
static enum refilter_end judge_passage(const struct refilter *r, const struct passage *p,
				       struct buf *says)
{
	const struct filter_mail *f = r->filters;
	const char *by = f->by ? f->by : "the relay";
	switch (p->end) {
	case PASSAGE_REFUSED:
		buf_printf(says, "%s says %s", by, p->reply);
		return REFILTER_HELD;
	case PASSAGE_DISCARDED:
		buf_printf(says, "%s wants it discarded", by);
		return REFILTER_DISCARDED;
	case PASSAGE_DONE:
		break;
	default:
		buf_puts(says, strerror(p->error));
		return REFILTER_HELD;
	}
	if (p->draft.envelope->held) {
		buf_printf(says, "%s wants it held: %s", by, f->held_why);
		return REFILTER_HELD;
	}
	if (p->draft.envelope->nrcpt == 0) {
		buf_puts(says, "filters have left no recipient");
		return REFILTER_DISCARDED;
	}
	return f->changed ? REFILTER_REPLACED : REFILTER_PASSED;
}

/* True: it has its answer; else the spool has its new message. */
static bool settle_passage(struct refilter *r, struct passage *p)
{
	struct buf says = {0};
	enum refilter_end end = judge_passage(r, p, &says);
	r->passage = NULL;
	if (end == REFILTER_REPLACED)
		store_changed(r, p);
	passage_free(&p);
	end_passage(r);
	if (end != REFILTER_REPLACED)
		conclude_passing(r, end, buf_len(&says) > 0 ? buf_cstr(&says) : NULL);
	buf_fini(&says);
	return end != REFILTER_REPLACED;
}

static void on_passage_over(struct passage *p)
{
	struct refilter *r = p->owner;
	struct refilters *all = r->all;
	magic_check(r, REFILTER_MAGIC);
	assert(r->passage == p);
	if (settle_passage(r, p))
		all->room(all->owner);
}

static void begin_passage(struct refilters *all, const struct take_means *with, struct refilter *r)
{
	assert(!r->passage && !r->filters);
	list_append(&all->passing, &r->link);
	all->npassing++;
	if (owes_report(r->envelope)) {
		conclude_passing(r, REFILTER_HELD, "a report to its sender is due first");
		return;
	}
	struct passage *p = r->passage =
		passage_new(with->conf, with->loop, with->pool, with->spool, ident_new());
	p->draft.envelope = new_envelope(r);
	passage_add(p, &fetch, r);
	if (dkim_rows_signs(with->conf))
		passage_add(p, &resign_stage, &r->resign);
	add_filters(r, with);
	r->resign.changed = &r->filters->changed;
	if (dkim_rows_signs(with->conf))
		passage_add(p, &dkim_stage, &r->resign);
	if (passage_run(p, on_passage_over, r))
		settle_passage(r, p);
}

void refilters_init(struct refilters *all, void (*room)(void *owner), void *owner)
{
	list_init(&all->waiting);
	list_init(&all->passing);
	all->room = room;
	all->owner = owner;
}

void refilters_fini(struct refilters *all)
{
	assert(list_empty(&all->waiting) && list_empty(&all->passing));
	assert(all->npassing == 0);
}

void refilters_take(struct refilters *all, struct refilter *r)
{
	magic_check(r, REFILTER_MAGIC);
	assert(!r->all);
	r->all = all;
	list_append(&all->waiting, &r->link);
	if (all->stopped)
		refilters_stop(all);
}

void refilters_go_on(struct refilters *all, const struct take_means *with)
{
	while (!all->stopped && all->npassing < REFILTER_AT_ONCE && !list_empty(&all->waiting)) {
		struct list *link = list_first(&all->waiting);
		list_remove(link);
		begin_passage(all, with, list_entry(link, struct refilter, link));
	}
}

void refilters_stored(struct spool_store *reply)
{
	struct refilter *r = reply->owner;
	magic_check(r, REFILTER_MAGIC);
	assert(!r->passage);
	struct refilters *all = r->all;
	r->as = reply->stored ? reply->id : 0;
	if (reply->stored)
		conclude_passing(r, REFILTER_REPLACED, NULL);
	else
		conclude_passing(r, REFILTER_HELD,
				 reply->outdated
					 ? "it is not on hold any more, or was changed meanwhile"
					 : "the queue takes no mail at present");
	free(reply);
	all->room(all->owner);
}

void refilters_stop(struct refilters *all)
{
	all->stopped = true;
	list_each_entry (struct refilter, r, link, &all->waiting) {
		list_remove(&r->link);
		answer_asker(r, REFILTER_HELD, "the relay is stopping");
	}
	list_each_entry (struct refilter, r, link, &all->passing)
		if (r->passage)
			conclude_passing(r, REFILTER_HELD, "the relay is stopping");
}
