/* SPDX-License-Identifier: ISC */
/* Rates that are shared, by name: deliveries reserved ahead, and what has passed under limits. */
#include "base/clock.h"
#include "base/magic.h"
#include "base/mem.h"
#include "cluster/reserve.h"
#include "cluster/shares_core.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So long whoever wants deliveries waits for Redis; longer where they are reserved further ahead. */
enum { PATIENCE_MS = 200, PATIENCE_EACH_US = 100 * RESERVE_EACH_MS };
enum { ROWS_MAX = 100000, DROP_AT_ONCE = 8, RESERVE_ROW_MAGIC = 0x4e5e4801 };

static int64_t patience_ms(const struct shares *s)
{
	int64_t ms = shares_nodes(s) * PATIENCE_EACH_US / 1000;
	return ms > PATIENCE_MS ? ms : PATIENCE_MS;
}

struct reserve_row {
	unsigned magic;
	UT_hash_handle hh;
	struct shares *shares;
	struct timer timer;
	struct reserve reserve;
	struct sharing_want *want; /* to be answered, or NULL */
	int64_t want_ms;	   /* steady clock: since when */
	struct loop *spender;	   /* or NULL */
	uint64_t told;
	int64_t rest_ms; /* steady clock: after an error nothing is asked before */
	char key[];
};

static void drop_row(struct reserve_row *r)
{
	assert(!r->reserve.asked || r->shares->stopped); /* the answer would find it gone */
	assert(!r->want || r->shares->stopped);
	timer_stop(&r->shares->loop->timers, &r->timer);
	magic_clear(r);
	HASH_DEL(r->shares->reserve, r);
	free(r->want);
	free(r);
}

static void grant_want(struct reserve_row *r, const struct reserve_grant *g)
{
	struct sharing_want *w = r->want;
	assert(g->n >= 0 && g->n <= w->n);
	r->want = NULL;
	w->n = g->n;
	w->from_us = g->from_us;
	w->again_us = g->again_us;
	loop_post(w->reply_to, &w->note);
}

static void tell_total(struct reserve_row *r, const struct reserve_answer *a, int64_t now_us)
{
	assert(r->spender);
	struct sharing_total *t = sharing_total_new(r->key);
	t->next_us = reserve_next_us(&r->reserve, a, now_us);
	t->through = r->told;
	loop_post(r->spender, &t->note);
}

static void step_row(struct reserve_row *r);

static void on_answer(void *owner, const redisReply *reply)
{
	struct reserve_row *r = owner;
	magic_check(r, RESERVE_ROW_MAGIC);
	struct shares *s = r->shares;
	int64_t now_us = clock_steady_us(), n[4];
	bool good = shares_numbers(reply, 4, n);
	if (s->stopped)
		return;
	if (good) {
		struct reserve_answer a = {n[0], n[1], n[2], n[3]};
		struct reserve_grant g;
		reserve_answered(&r->reserve, &a, shares_nodes(s), now_us, &g);
		if (r->want)
			grant_want(r, &g);
		if (r->spender)
			tell_total(r, &a, now_us);
	} else {
		reserve_missed(&r->reserve);
		r->rest_ms = now_us / 1000 + SHARES_REST_MS;
	}
	if (reply)
		shares_answered(s, good);
	step_row(r);
}

static bool send_ask(struct reserve_row *r, const struct reserve_ask *ask)
{
	struct shares *s = r->shares;
	char *key = mem_printf("%srate:%s", link_prefix(s->link), r->key);
	char n[8][24];
	const int64_t number[] = {ask->interval_us, ask->spent,	 ask->want,  ask->ahead_us,
				  ask->most_us,	    ask->forget, ask->since, ask->known_us};
	for (int i = 0; i < 8; i++)
		snprintf(n[i], sizeof n[i], "%lld", (long long)number[i]);
	const char *arg[] = {key, link_since(s->link), n[0], n[1], n[2], n[3], n[4], n[5], n[6],
			     n[7]};
	bool sent = link_eval(s->link, &s->reserve_script, on_answer, r, 2, 10, arg);
	free(key);
	return sent;
}

/* Nobody waits for an answer longer than that. */
static void answer_alone(struct reserve_row *r, bool away, int64_t now_ms)
{
	struct reserve_grant g;
	bool late = r->want && now_ms >= r->want_ms + patience_ms(r->shares);
	if ((away || late) &&
	    reserve_alone(&r->reserve, shares_nodes(r->shares), now_ms * 1000, &g))
		grant_want(r, &g);
}

static void step_row(struct reserve_row *r)
{
	assert(!r->shares->stopped && (r->want != NULL) == (r->reserve.wanted > 0));
	const struct shares *s = r->shares;
	int64_t now_ms = clock_steady_ms();
	bool away = shares_away(s) || now_ms < r->rest_ms;
	struct reserve_ask ask;
	if (!away && reserve_ask(&r->reserve, shares_nodes(s), now_ms * 1000, &ask) &&
	    !send_ask(r, &ask)) {
		reserve_missed(&r->reserve);
		r->rest_ms = now_ms + SHARES_REST_MS;
		away = true;
	}
	answer_alone(r, away, now_ms);
	if (reserve_over(&r->reserve, now_ms * 1000)) {
		drop_row(r);
		return;
	}
	int64_t due_ms = now_ms + RESERVE_FORGET_MS;
	if (r->reserve.next_us > due_ms * 1000)
		due_ms = r->reserve.next_us / 1000;
	if (r->want)
		due_ms = r->want_ms + patience_ms(s);
	else if (away)
		due_ms = now_ms + SHARES_REST_MS;
	else if (r->reserve.spent > 0 && !r->reserve.asked)
		due_ms = (r->reserve.due_us + 999) / 1000;
	timer_start(&s->loop->timers, &r->timer, due_ms);
}

static void on_timer(void *owner)
{
	struct reserve_row *r = owner;
	magic_check(r, RESERVE_ROW_MAGIC);
	step_row(r);
}

/* Lost is only what Redis might have to be told if it lost it, too. */
static void make_room(struct shares *s)
{
	int looked = 0;
	hash_each (struct reserve_row, r, s->reserve) {
		if (HASH_COUNT(s->reserve) < ROWS_MAX || looked++ == DROP_AT_ONCE)
			return;
		if (!r->want && !r->reserve.asked && !r->reserve.forget && r->reserve.spent == 0)
			drop_row(r);
	}
}

static struct reserve_row *get_row(struct shares *s, const char *key)
{
	struct reserve_row *r;
	size_t len = strlen(key);
	HASH_FIND(hh, s->reserve, key, len, r);
	if (r)
		return r;
	make_room(s);
	r = mem_zalloc(sizeof *r + len + 1);
	memcpy(r->key, key, len);
	r->magic = RESERVE_ROW_MAGIC;
	r->shares = s;
	timer_init(&r->timer, on_timer, r);
	HASH_ADD_KEYPTR(hh, s->reserve, r->key, len, r);
	return r;
}

void reserve_table_want(struct shares *s, struct sharing_want *w)
{
	struct reserve_row *r = get_row(s, w->key);
	int64_t now_ms = clock_steady_ms();
	if (r->want) { /* of a site that was forgotten, and is known again */
		w->n = 0;
		w->again_us = (now_ms + patience_ms(s)) * 1000;
		loop_post(w->reply_to, &w->note);
		return;
	}
	reserve_want(&r->reserve, &w->rate, w->n, now_ms * 1000);
	r->want = w;
	r->want_ms = now_ms;
	step_row(r);
}

void reserve_table_spent(struct shares *s, struct sharing_spent *n)
{
	struct reserve_row *r = get_row(s, n->key);
	int64_t now_us = clock_steady_us();
	r->spender = n->reply_to;
	r->told = n->told;
	if (n->forget)
		reserve_forget(&r->reserve, now_us);
	else
		reserve_spend(&r->reserve, &n->rate, n->n, now_us);
	free(n);
	step_row(r);
}

void reserve_table_look(struct shares *s)
{
	hash_each (struct reserve_row, r, s->reserve)
		step_row(r);
}

void reserve_table_free(struct shares *s)
{
	hash_each (struct reserve_row, r, s->reserve)
		drop_row(r);
}
