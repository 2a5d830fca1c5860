/* SPDX-License-Identifier: ISC */
/* The leases of this node, by host: asked for when they are due, offered to who wants them. */
#include "base/clock.h"
#include "base/magic.h"
#include "base/mem.h"
#include "cluster/lease.h"
#include "cluster/shares_core.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)LEASE_SETTLE_MS > (int)LINK_REST_MOST_MS,
	      "the first node that is back would have what others hold");

enum { LEASE_ROW_MAGIC = 0x1ea5e801 };

struct lease_row {
	unsigned magic;
	UT_hash_handle hh;
	struct shares *shares;
	struct loop *holder;
	struct timer timer;
	struct lease lease;
	int64_t refused_ms; /* steady clock: since when answers have been errors; 0 */
	char key[];
};

static void drop_row(struct lease_row *r)
{
	assert(!r->lease.asked || r->shares->stopped); /* the answer would find it gone */
	assert(r->shares->stopped || lease_over(&r->lease));
	timer_stop(&r->shares->loop->timers, &r->timer);
	magic_clear(r);
	HASH_DEL(r->shares->lease, r);
	free(r);
}

static void step_row(struct lease_row *r);

static void on_answer(void *owner, const redisReply *reply)
{
	struct lease_row *r = owner;
	magic_check(r, LEASE_ROW_MAGIC);
	int64_t now_ms = clock_steady_ms(), n[4];
	bool good = shares_numbers(reply, 4, n);
	if (r->shares->stopped)
		return;
	if (good)
		lease_answered(&r->lease, &(struct lease_answer){n[0], n[1], n[2], n[3]}, now_ms);
	else
		lease_missed(&r->lease, now_ms + SHARES_REST_MS);
	if (reply)
		shares_answered(r->shares, good);
	r->refused_ms = good || !reply ? 0 : r->refused_ms ? r->refused_ms : now_ms;
	step_row(r);
}

static bool send_ask(struct lease_row *r, const struct lease_ask *ask)
{
	struct shares *s = r->shares;
	char *key = mem_printf("%slease:%s", link_prefix(s->link), r->key);
	char n[8][24];
	const int64_t number[] = {ask->limit,	 ask->hold,	ask->want,	 LEASE_TTL_MS,
				  LEASE_TURN_MS, LEASE_SCAN_MS, LEASE_SCAN_ROWS, LEASE_SETTLE_MS};
	for (int i = 0; i < 8; i++)
		snprintf(n[i], sizeof n[i], "%lld", (long long)number[i]);
	const char *arg[] = {
		key, link_since(s->link), s->node, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]};
	bool sent = link_eval(s->link, &s->lease_script, on_answer, r, 2, 11, arg);
	free(key);
	return sent;
}

static void post_offer(struct lease_row *r, struct lease_view view)
{
	struct lease_offer o;
	if (r->refused_ms != 0) {
		view.away = true;
		view.since_ms = r->refused_ms;
	}
	if (!lease_offer(&r->lease, &view, &o))
		return;
	struct sharing_leased *note = sharing_leased_new(r->key);
	note->number = o.number;
	note->allowed = o.allowed;
	note->fair = o.fair;
	note->others = o.others;
	note->scarce = o.scarce;
	loop_post(r->holder, &note->note);
}

static void step_row(struct lease_row *r)
{
	assert(!r->shares->stopped);
	const struct shares *s = r->shares;
	int64_t now_ms = clock_steady_ms();
	int64_t since_ms =
		s->refused ? now_ms : s->since_ms; /* leases expire while all is refused */
	struct lease_view view = {shares_nodes(s), shares_away(s), since_ms, now_ms};
	struct lease_ask ask;
	if (lease_ask(&r->lease, &view, &ask) && !send_ask(r, &ask))
		lease_missed(&r->lease, now_ms + SHARES_LOOK_MS);
	post_offer(r, view);
	if (lease_over(&r->lease)) {
		drop_row(r);
		return;
	}
	int64_t due_ms = now_ms + SHARES_LOOK_MS;
	if (!view.away && !r->lease.asked && r->lease.due_ms < due_ms)
		due_ms = r->lease.due_ms;
	timer_start(&s->loop->timers, &r->timer, due_ms);
}

static void on_timer(void *owner)
{
	struct lease_row *r = owner;
	magic_check(r, LEASE_ROW_MAGIC);
	step_row(r);
}

void lease_table_take(struct shares *s, struct sharing_need *n)
{
	struct lease_row *r;
	size_t len = strlen(n->key);
	HASH_FIND(hh, s->lease, n->key, len, r);
	if (!r) {
		r = mem_zalloc(sizeof *r + len + 1);
		memcpy(r->key, n->key, len);
		r->magic = LEASE_ROW_MAGIC;
		r->shares = s;
		timer_init(&r->timer, on_timer, r);
		HASH_ADD_KEYPTR(hh, s->lease, r->key, len, r);
	}
	r->holder = n->reply_to;
	lease_tell(&r->lease, n->limit, n->hold, n->want, n->heard, clock_steady_ms());
	free(n);
	step_row(r);
}

void lease_table_look(struct shares *s)
{
	hash_each (struct lease_row, r, s->lease)
		step_row(r);
}

void lease_table_free(struct shares *s)
{
	hash_each (struct lease_row, r, s->lease)
		drop_row(r);
}
