/* SPDX-License-Identifier: ISC */
#include "sts/sts.h"

#include "base/clock.h"
#include "base/conf_note.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/name_key.h"
#include "base/text_note.h"
#include "sts/sts_look.h"
#include "sts/sts_text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { STS_CONF = NOTES_FROM(NOTES_OF_STS), SAVE_MS = 10000, TICK_MS = 60000 };

static struct sts_domain *domain_of(void *owner, const char *name)
{
	struct sts *s = owner;
	struct sts_domain *d = sts_table_get(&s->table, name);
	d->sts = s;
	return d;
}

/* Does a policy hold, whatever it says? */
static bool has_policy(const struct sts_domain *d)
{
	return d->policy && clock_wall_ms() < d->ends_ms;
}

/* fresh: it was fetched just now, and holds for this once though it may not be kept. */
static void answer_one(const struct sts_domain *d, struct sts_ask *a, bool fresh)
{
	assert(!a->policy && !a->why);
	if (has_policy(d) || (fresh && d->policy)) {
		a->policy = sts_policy_ref(d->policy);
		memcpy(a->id, d->id, sizeof a->id);
		a->fetched_ms = d->fetched_ms;
		a->ends_ms = d->ends_ms;
	}
	memcpy(a->record, d->record, sizeof a->record);
	a->outcome = d->outcome;
	a->why = mem_strdup(d->why);
	a->note.type = STS_ANSWER;
	loop_post(a->reply_to, &a->note);
}

static void answer_all(struct sts_domain *d)
{
	while (d->waiting) {
		struct sts_ask *a = (struct sts_ask *)d->waiting;
		d->waiting = a->note.next;
		answer_one(d, a, d->outcome == STS_FETCHED);
	}
}

static void save_policies(void *owner)
{
	struct sts *s = owner;
	struct buf text = {0};
	assert(s->edges.main && s->changed);
	s->changed = false;
	sts_learnt(s, &text);
	loop_post(s->edges.main, text_note_new(STS_SAVE, &text));
}

static void save_soon(struct sts *s)
{
	if (s->changed || !s->edges.main)
		return;
	s->changed = true;
	loop_timer_in(s->loop, &s->save, SAVE_MS);
}

void sts_looked(struct sts_domain *d)
{
	struct sts *s = d->sts;
	assert(d->look == STS_LOOK_NONE || d->look == STS_LOOK_LATE);
	answer_all(d);
	if (d->outcome == STS_FETCHED)
		save_soon(s);
	sts_table_trim(&s->table);
}

/* Those that mail is sent to are looked after in time, and what has ended is forgotten. */
static void look_after_domains(void *owner)
{
	struct sts *s = owner;
	int64_t now_ms = clock_steady_ms();
	list_each_entry (struct sts_domain, d, in_use, &s->table.with) {
		if (d->look != STS_LOOK_NONE)
			continue;
		if (!has_policy(d))
			sts_table_set(&s->table, d, NULL);
		else if (d->asked && sts_look_due(d) && now_ms >= d->look_ms)
			sts_look_begin(d);
	}
	sts_table_trim(&s->table);
	loop_timer_in(s->loop, &s->tick, TICK_MS);
}

/* A text that can't be a host name has no policy. */
static char *ascii_of(const char *domain)
{
	char name[NAME_KEY_DOMAIN];
	return name_key_domain(domain, name) && conf_host_good(name) ? mem_strdup(name) : NULL;
}

/* Had it a policy when it was looked at, whose life is over before that would be done again? */
static bool has_lapsed(const struct sts_domain *d)
{
	bool found = d->outcome == STS_FETCHED || d->outcome == STS_UNCHANGED;
	return found && !has_policy(d);
}

static void handle_ask(struct sts *s, struct sts_ask *a)
{
	static const struct sts_domain nobody;
	char *name = ascii_of(a->domain);
	if (!name) {
		answer_one(&nobody, a, false);
		return;
	}
	struct sts_domain *d = domain_of(s, name);
	free(name);
	bool at_once = has_policy(d) && !a->look;
	bool wanted = a->look || clock_steady_ms() >= d->look_ms || has_lapsed(d);
	d->asked = true;
	if (at_once || (!wanted && (d->look == STS_LOOK_NONE || d->look == STS_LOOK_LATE))) {
		answer_one(d, a, false);
	} else {
		a->note.next = d->waiting;
		d->waiting = &a->note;
	}
	if (wanted && d->look == STS_LOOK_NONE)
		sts_look_begin(d);
	else if (d->waiting && d->look == STS_LOOK_LATE)
		answer_all(d);
}

/* A record is remembered for as long as the settings say now; and a look that failed is taken again with them. */
static void use_conf(struct sts *s, struct note *note)
{
	int64_t before_ms = s->conf->tls.mta_sts_interval;
	conf_note_use(note, &s->conf);
	for (struct sts_domain *d = s->table.all; d; d = d->hh.next) {
		bool failed = d->outcome == STS_RECORD_UNKNOWN || d->outcome >= STS_FETCH_ERROR;
		if (failed)
			d->look_ms = 0;
		else if (d->look_ms > 0)
			d->look_ms += s->conf->tls.mta_sts_interval - before_ms;
	}
}

static void receive_note(void *owner, struct note *n)
{
	struct sts *s = owner;
	struct sts_ask *a = (struct sts_ask *)n;
	struct resolve *r = (struct resolve *)n;
	switch (n->type) {
	case STS_CONF:
		use_conf(s, n);
		break;
	case STS_ASK:
		if (s->https)
			handle_ask(s, a);
		else
			sts_ask_free(&a);
		break;
	case RESOLVE_ANSWER:
		if (s->https)
			sts_look_answered(r);
		else
			resolve_free(&r);
		break;
	default:
		assert(0 && "a note that sts does not know");
	}
}

/* For who watches them: they begin at zero. */
static void count_from_zero(void)
{
	for (int outcome = STS_FETCHED; outcome <= STS_INVALID; outcome++)
		metric_cell_add(metric_cell(FAMILY_sts_fetches,
					    sts_outcome_word((enum sts_outcome)outcome), NULL),
				0);
}

struct sts *sts_new(struct conf *conf, const struct sts_edges *edges)
{
	struct sts *s = mem_zalloc(sizeof *s);
	s->loop = loop_new("sts", receive_note, NULL, s);
	s->conf = conf_ref(conf);
	s->edges = *edges;
	s->https = https_new(s->loop);
	count_from_zero();
	sts_table_init(&s->table);
	list_init(&s->queue);
	list_init(&s->slow);
	timer_init(&s->save, save_policies, s);
	timer_init(&s->tick, look_after_domains, s);
	loop_timer_in(s->loop, &s->tick, TICK_MS);
	return s;
}

void sts_recall(struct sts *s, const char *text)
{
	assert(!s->loop->running);
	sts_text_read(text, clock_wall_ms(), domain_of, &s->table, s);
	sts_table_trim(&s->table);
}

void sts_start(struct sts *s)
{
	loop_start(s->loop);
}

void sts_stop(struct sts *s)
{
	loop_stop(s->loop);
}

void sts_learnt(struct sts *s, struct buf *to)
{
	sts_text_write(&s->table, clock_wall_ms(), to);
}

static void forget_domain(struct sts_domain *d)
{
	sts_look_drop(d);
	while (d->waiting) {
		struct sts_ask *a = (struct sts_ask *)d->waiting;
		d->waiting = a->note.next;
		sts_ask_free(&a);
	}
}

void sts_free(struct sts **sp)
{
	struct sts *s = *sp;
	if (!s)
		return;
	loop_stop(s->loop);
	for (struct sts_domain *d = s->table.all; d; d = d->hh.next)
		forget_domain(d);
	assert(list_empty(&s->queue) && list_empty(&s->slow));
	assert(s->fetching == 0 && s->nslow == 0);
	https_free(&s->https);
	sts_table_fini(&s->table);
	timer_stop(&s->loop->timers, &s->save);
	timer_stop(&s->loop->timers, &s->tick);
	loop_free(&s->loop);
	conf_unref(s->conf);
	free(s);
	*sp = NULL;
}

struct loop *sts_loop(struct sts *s)
{
	return s->loop;
}

void sts_reload(struct sts *s, struct conf *conf)
{
	conf_note_post(s->loop, STS_CONF, conf);
}
