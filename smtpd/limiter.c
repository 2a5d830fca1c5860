/* SPDX-License-Identifier: ISC */
#include "smtpd/limiter.h"

#include "base/clock.h"
#include "base/conf_note.h"
#include "base/mem.h"
#include "base/sharing.h"
#include "base/tables.h"
#include "base/text_note.h"
#include "base/words.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TOP_EVERY_MS = 1000 };

struct limiter {
	struct loop *loop, *saver;
	struct loop *watcher[LIMITER_WATCHERS_MAX];
	int nwatcher;
	struct conf *conf;
	struct limits limits;
	void (*to_cluster)(void *context, struct note *); /* NULL: there is none */
	void *to_context;
	bool stopped;		 /* what is counted now is not told any more */
	struct clients *clients; /* that share rates, or NULL */
	struct timer top;	 /* runs while what watchers were told last is old */
	struct timer figures;	 /* runs while what was saved last is old */
};

struct limiter_event *limiter_event_new(enum limiter_note type, const char *login, uint32_t nrcpt)
{
	size_t size = strlen(login) + 1;
	struct limiter_event *e = mem_zalloc(sizeof *e + size);
	e->note.type = (int)type;
	e->nrcpt = nrcpt;
	memcpy(e->login, login, size);
	return e;
}

struct limiter_order *limiter_order_new(enum order op, const char *name, struct loop *reply_to,
					void *owner)
{
	struct limiter_order *o = mem_zalloc(sizeof *o);
	assert(name || !order_changes(op));
	o->note.type = LIMITER_ORDER;
	o->reply_to = reply_to;
	o->owner = owner;
	o->op = op;
	o->name = name ? mem_strdup(name) : NULL;
	return o;
}

void limiter_order_free(struct limiter_order **op)
{
	struct limiter_order *o = *op;
	for (int i = 0; i < o->n; i++)
		free(o->login[i].name);
	free(o->login);
	free(o->name);
	free(o);
	*op = NULL;
}

void limiter_top_free(struct limiter_top **tp)
{
	struct limiter_top *t = *tp;
	for (int i = 0; t && i < t->n; i++)
		free(t->login[i].name);
	for (int i = 0; t && i < t->nkept; i++)
		free(t->kept[i].name);
	free(t);
	*tp = NULL;
}

void limiter_question_fini(struct limiter_question *q)
{
	for (int by = 0; by < LIMIT_BY_COUNT; by++)
		free(q->name[by]);
	free(q->row);
}

/* --- what is told */

static const struct limits_row unseen;

static void describe_login(const struct limiter *l, enum limit_by by, const char *name,
			   const struct limits_row *r, struct limiter_login *to)
{
	const struct conf_limit limit = limits_in_force(l->conf, by, name, r);
	*to = (struct limiter_login){.name = mem_strdup(name),
				     .by = by,
				     .suspended = r->suspended,
				     .figures = r->figures,
				     .seen_ms = r->seen_ms};
	figures_turn(&to->figures, clock_wall_ms());
	to->limit[LIMIT_MESSAGES] = limit.messages;
	to->limit[LIMIT_RECIPIENTS] = limit.recipients;
	for (int of = 0; of < LIMIT_OF_COUNT; of++)
		if (to->limit[of].events > 0)
			to->room[of] = gcra_room(&r->spent[of], &to->limit[of], clock_steady_us());
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct limiter_login *)a)->name,
		      ((const struct limiter_login *)b)->name);
}

/* Of its own, whether it was seen or not. */
static bool has_limits(const struct limiter *l, const char *login)
{
	struct table_origin origin;
	char *row = tables_get(l->conf->tables, TABLE_LIMITS, login, &origin);
	free(row);
	return row;
}

static void list_logins(const struct limiter *l, struct limiter_order *o)
{
	const struct limits_row *first = l->limits.row[LIMIT_BY_LOGIN];
	o->login = mem_zalloc((HASH_COUNT(first) + 1) * sizeof *o->login);
	for (const struct limits_row *r = first; r; r = r->hh.next)
		if (!o->name || strcmp(o->name, r->name) == 0)
			describe_login(l, LIMIT_BY_LOGIN, r->name, r, &o->login[o->n++]);
	if (o->name && o->n == 0 && has_limits(l, o->name))
		describe_login(l, LIMIT_BY_LOGIN, o->name, &unseen, &o->login[o->n++]);
	if (o->n > 1)
		qsort(o->login, (size_t)o->n, sizeof *o->login, by_name);
	o->found = o->n > 0;
}

/* The first so many of those seen so far. */
struct ranked {
	const struct limits_row *row[LIMITER_TOP_MAX];
	enum limit_by by[LIMITER_TOP_MAX];
	int n;
};

static uint32_t today_of(const struct limits_row *r, enum login_figure which)
{
	return r->figures.today[which];
}

static bool sent_more(const struct limits_row *a, const struct limits_row *b)
{
	return today_of(a, LOGIN_MESSAGES) > today_of(b, LOGIN_MESSAGES);
}

static bool kept_more(const struct limits_row *a, const struct limits_row *b)
{
	if (a->suspended != b->suspended)
		return a->suspended;
	if (today_of(a, LOGIN_REFUSED) != today_of(b, LOGIN_REFUSED))
		return today_of(a, LOGIN_REFUSED) > today_of(b, LOGIN_REFUSED);
	return today_of(a, LOGIN_FAILURES) > today_of(b, LOGIN_FAILURES);
}

/* Insert it where it belongs. */
static void place_row(struct ranked *to, enum limit_by by, const struct limits_row *r,
		      bool (*before)(const struct limits_row *, const struct limits_row *))
{
	int at = to->n;
	assert(to->n <= LIMITER_TOP_MAX);
	while (at > 0 && before(r, to->row[at - 1]))
		at--;
	if (at == LIMITER_TOP_MAX)
		return;
	int last = to->n < LIMITER_TOP_MAX ? to->n++ : LIMITER_TOP_MAX - 1;
	for (int i = last; i > at; i--) {
		to->row[i] = to->row[i - 1];
		to->by[i] = to->by[i - 1];
	}
	to->row[at] = r;
	to->by[at] = by;
}

static void rank_rows(const struct limiter *l, enum limit_by by, struct ranked *most,
		      struct ranked *kept, int64_t *suspended)
{
	int64_t now_ms = clock_wall_ms();
	for (struct limits_row *r = l->limits.row[by]; r; r = r->hh.next) {
		figures_turn(&r->figures, now_ms);
		if (today_of(r, LOGIN_MESSAGES) > 0)
			place_row(most, by, r, sent_more);
		if (r->suspended || today_of(r, LOGIN_REFUSED) > 0 ||
		    today_of(r, LOGIN_FAILURES) > 0)
			place_row(kept, by, r, kept_more);
		*suspended += r->suspended;
	}
}

static int describe_all(const struct limiter *l, const struct ranked *of, struct limiter_login *to)
{
	for (int i = 0; i < of->n; i++)
		describe_login(l, of->by[i], of->row[i]->name, of->row[i], &to[i]);
	return of->n;
}

static void tell_top(void *owner)
{
	struct limiter *l = owner;
	struct ranked most = {.n = 0}, kept = {.n = 0};
	int64_t suspended = 0;
	for (int by = 0; by < LIMIT_BY_COUNT; by++)
		rank_rows(l, (enum limit_by)by, &most, &kept, &suspended);
	for (int w = 0; w < l->nwatcher; w++) {
		struct limiter_top *top = mailbox_note(sizeof *top, LIMITER_TOP);
		top->n = describe_all(l, &most, top->login);
		top->nkept = describe_all(l, &kept, top->kept);
		top->suspended = suspended;
		loop_post(l->watcher[w], &top->note);
	}
}

/* Who is first may be others. */
static void touch_top(struct limiter *l)
{
	if (l->nwatcher > 0 && !timer_active(&l->top))
		loop_timer_in(l->loop, &l->top, TOP_EVERY_MS);
}

/* Counts that are to be told to other nodes, and saved. */
static void touch_figures(struct limiter *l)
{
	touch_top(l);
	if (!l->stopped && !timer_active(&l->figures))
		loop_timer_in(l->loop, &l->figures, LIMITER_FIGURES_MS);
}

static void save_figures(void *owner)
{
	const struct limiter *l = owner;
	struct buf text = {0};
	limits_write(&l->limits, &text);
	loop_post(l->saver, text_note_new(LIMITER_FIGURES, &text));
}

static void save_suspended(const struct limiter *l)
{
	struct buf text = {0};
	for (const struct limits_row *r = l->limits.row[LIMIT_BY_LOGIN]; r; r = r->hh.next)
		if (r->suspended)
			buf_printf(&text, "%s\n", r->name);
	loop_post(l->saver, text_note_new(LIMITER_SAVE, &text));
}

/* --- what is asked */

static void judge_question(struct limiter *l, struct limiter_question *q)
{
	assert(loop_is_ours(l->loop));
	if (q->asked)
		limits_told(&l->limits, q->name[LIMIT_BY_LOGIN], q->row, clock_steady_us());
	limits_judge(&l->limits, l->conf, q->of, (const char *const *)q->name, clock_steady_us(),
		     clock_wall_ms(), &q->ruling);
	if (q->ruling.suspended || q->ruling.over)
		(q->name[LIMIT_BY_LOGIN] ? touch_figures : touch_top)(l);
	wait_answer_post(&q->answer);
}

static void hear_event(struct limiter *l, struct limiter_event *e)
{
	if (e->note.type == LIMITER_LOGGED_IN)
		limits_logged_in(&l->limits, e->login, clock_steady_us(), clock_wall_ms());
	else if (e->note.type == LIMITER_ACCEPTED)
		limits_accepted(&l->limits, e->login, e->nrcpt, clock_wall_ms());
	else
		limits_failed(&l->limits, e->login, clock_wall_ms());
	touch_figures(l);
	free(e);
}

static bool has_users(const struct limiter *l)
{
	return l->conf->tables && tables_count(l->conf->tables, TABLE_USERS) > 0;
}

/* The login may have been misspelt. Whom a Dovecot or a certificate knows, only their first login shows. */
static bool is_stranger(const struct limiter *l, const char *login)
{
	struct table_origin origin;
	if (!has_users(l))
		return true;
	char *row = tables_get(l->conf->tables, TABLE_USERS, login, &origin);
	bool there = row;
	mem_free_secret(row);
	return !there;
}

static void suspend_login(struct limiter *l, struct limiter_order *o, bool suspended)
{
	const struct limits_row *r = limits_find(&l->limits, LIMIT_BY_LOGIN, o->name);
	o->stranger = suspended && !r && is_stranger(l, o->name);
	o->listed = has_users(l);
	o->found = suspended || (r && r->suspended);
	if (o->found) {
		limits_suspend(&l->limits, o->name, suspended);
		save_suspended(l);
		touch_top(l);
	}
}

static void obey_order(struct limiter *l, struct limiter_order *o)
{
	switch (o->op) {
	case ORDER_LIST:
	case ORDER_SHOW:
		list_logins(l, o);
		break;
	case ORDER_SUSPEND:
		suspend_login(l, o, true);
		break;
	case ORDER_RESUME:
		suspend_login(l, o, false);
		break;
	case ORDER_RESET:
		o->found = limits_reset(&l->limits, o->name);
		touch_figures(l);
		break;
	}
	loop_post(o->reply_to, &o->note);
}

/* --- what other nodes have let pass */

static const char *const by_words[] = {
	[LIMIT_BY_LOGIN] = "login", [LIMIT_BY_CLIENT] = "client", [LIMIT_BY_SENDER] = "sender"};
static const char *const of_words[] = {
	[LIMIT_MESSAGES] = "messages", [LIMIT_RECIPIENTS] = "recipients"};

static struct sharing_spent *spent_new(const struct limiter *l, enum limit_by by, enum limit_of of,
				       const struct limits_row *r, const struct conf_rate *rate)
{
	char *key = mem_printf("%s/%s/%s", by_words[by], of_words[of], r->name);
	struct sharing_spent *s = sharing_spent_new(l->loop, key, rate);
	s->told = r->told[of];
	free(key);
	return s;
}

static void tell_spent(void *owner, enum limit_by by, enum limit_of of, const struct limits_row *r,
		       const struct conf_rate *rate, int64_t n)
{
	const struct limiter *l = owner;
	struct sharing_spent *s = spent_new(l, by, of, r, rate);
	s->n = n;
	l->to_cluster(l->to_context, &s->note);
}

static void tell_forget(void *owner, enum limit_by by, enum limit_of of, const struct limits_row *r)
{
	const struct limiter *l = owner;
	struct sharing_spent *s = spent_new(l, by, of, r, &(struct conf_rate){0});
	s->forget = true;
	l->to_cluster(l->to_context, &s->note);
}

/* The name behind these two words, or NULL. */
static const char *name_after(const char *key, const char *by, const char *of)
{
	size_t nby = strlen(by), nof = strlen(of);
	bool same = strncmp(key, by, nby) == 0 && key[nby] == '/' &&
		    strncmp(key + nby + 1, of, nof) == 0 && key[nby + 1 + nof] == '/';
	return same ? key + nby + nof + 2 : NULL;
}

static void hear_total(struct limiter *l, struct sharing_total *t)
{
	bool theirs = l->clients && clients_total(l->clients, t);
	for (int by = 0; !theirs && by < LIMIT_BY_COUNT; by++)
		for (int of = 0; of < LIMIT_OF_COUNT; of++) {
			const char *name = name_after(t->key, by_words[by], of_words[of]);
			if (name)
				limits_total(&l->limits, (enum limit_by)by, (enum limit_of)of, name,
					     l->conf, t->next_us, t->through);
		}
	free(t);
}

static void hear_parts(struct limiter *l, struct sharing_parts *p)
{
	l->limits.parts = p->parts;
	if (l->clients)
		clients_parts(l->clients, p->parts);
	free(p);
}

static void receive_note(void *owner, struct note *note)
{
	struct limiter *l = owner;
	switch (note->type) {
	case LIMITER_ASK:
		judge_question(l, (struct limiter_question *)note);
		break;
	case LIMITER_LOGGED_IN:
	case LIMITER_ACCEPTED:
	case LIMITER_FAILED:
		hear_event(l, (struct limiter_event *)note);
		break;
	case SHARING_TOTAL:
		hear_total(l, (struct sharing_total *)note);
		break;
	case SHARING_PARTS:
		hear_parts(l, (struct sharing_parts *)note);
		break;
	case LIMITER_ORDER:
		obey_order(l, (struct limiter_order *)note);
		break;
	default:
		assert(note->type == LIMITER_CONF);
		conf_note_use(note, &l->conf);
	}
}

/* --- the thread */

struct limiter *limiter_new(struct conf *conf, struct loop *saver)
{
	struct limiter *l = mem_zalloc(sizeof *l);
	l->conf = conf_ref(conf);
	l->saver = saver;
	l->loop = loop_new("limiter", receive_note, NULL, l);
	limits_init(&l->limits);
	timer_init(&l->top, tell_top, l);
	timer_init(&l->figures, save_figures, l);
	return l;
}

void limiter_recall(struct limiter *l, const char *text)
{
	assert(!l->loop->running);
	for (char *login; (login = words_line(&text)); free(login))
		if (*login)
			limits_suspend(&l->limits, login, true);
}

void limiter_recall_figures(struct limiter *l, const char *text)
{
	assert(!l->loop->running);
	limits_read(&l->limits, text);
}

void limiter_figures(const struct limiter *l, struct buf *to)
{
	assert(!l->loop->running);
	limits_write(&l->limits, to);
}

void limiter_watch(struct limiter *l, struct loop *watcher)
{
	assert(l->nwatcher < LIMITER_WATCHERS_MAX && !l->loop->running);
	l->watcher[l->nwatcher++] = watcher;
}

void limiter_share(struct limiter *l, void (*to_cluster)(void *context, struct note *),
		   void *context)
{
	assert(!l->loop->running);
	l->to_cluster = to_cluster;
	l->to_context = context;
	l->limits.sharing = (struct limits_sharing){tell_spent, tell_forget, l};
}

void limiter_share_clients(struct limiter *l, struct clients *clients)
{
	l->clients = clients;
	clients_share(clients, l->loop, l->to_cluster, l->to_context);
}

struct loop *limiter_loop(struct limiter *l)
{
	return l->loop;
}

void limiter_start(struct limiter *l)
{
	touch_top(l); /* who was suspended before */
	loop_start(l->loop);
}

void limiter_reload(struct limiter *l, struct conf *conf)
{
	conf_note_post(l->loop, LIMITER_CONF, conf);
}

void limiter_stop(struct limiter *l)
{
	loop_stop(l->loop);
	l->nwatcher = 0;
	l->stopped = true;
	mailbox_drain(&l->loop->mailbox); /* what was accepted meanwhile is still counted */
	timer_stop(&l->loop->timers, &l->top);
	timer_stop(&l->loop->timers, &l->figures);
}

void limiter_free(struct limiter **lp)
{
	struct limiter *l = *lp;
	if (!l)
		return;
	loop_free(&l->loop);
	limits_fini(&l->limits);
	conf_unref(l->conf);
	free(l);
	*lp = NULL;
}
