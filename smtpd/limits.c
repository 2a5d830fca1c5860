/* SPDX-License-Identifier: ISC */
#include "smtpd/limits.h"

#include "base/mem.h"
#include "base/tables.h"
#include "base/words.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DROP_AT_ONCE = 2 }; /* rows that stand for nothing, for each that is new */

void limits_init(struct limits *t)
{
	*t = (struct limits){.parts = 1};
	for (int by = 0; by < LIMIT_BY_COUNT; by++)
		list_init(&t->seen[by]);
}

static void drop_row(struct limits *t, enum limit_by by, struct limits_row *r)
{
	assert(by < LIMIT_BY_COUNT);
	HASH_DEL(t->row[by], r);
	list_remove(&r->link);
	free(r);
}

void limits_fini(struct limits *t)
{
	for (int by = 0; by < LIMIT_BY_COUNT; by++) {
		hash_each (struct limits_row, r, t->row[by])
			drop_row(t, (enum limit_by)by, r);
		assert(!t->row[by] && list_empty(&t->seen[by]));
	}
}

struct limits_row *limits_find(const struct limits *t, enum limit_by by, const char *name)
{
	struct limits_row *r;
	HASH_FIND(hh, t->row[by], name, strlen(name), r);
	return r;
}

static bool stands_for_nothing(const struct limits_row *r, enum limit_by by, int64_t now_us)
{
	return by != LIMIT_BY_LOGIN && r->spent[LIMIT_MESSAGES].next_us <= now_us &&
	       r->spent[LIMIT_RECIPIENTS].next_us <= now_us;
}

static void make_room(struct limits *t, enum limit_by by, int64_t now_us)
{
	for (int i = 0; i < DROP_AT_ONCE && !list_empty(&t->seen[by]); i++) {
		struct limits_row *r =
			list_entry(list_first(&t->seen[by]), struct limits_row, link);
		if (!stands_for_nothing(r, by, now_us) && HASH_COUNT(t->row[by]) < LIMITS_ROWS_MAX)
			return;
		drop_row(t, by, r);
	}
}

static struct limits_row *get_row(struct limits *t, enum limit_by by, const char *name,
				  int64_t now_us)
{
	struct limits_row *r = limits_find(t, by, name);
	if (r)
		return r;
	size_t len = strlen(name);
	make_room(t, by, now_us);
	r = mem_zalloc(sizeof *r + len + 1);
	memcpy(r->name, name, len);
	list_append(&t->seen[by], &r->link);
	HASH_ADD_KEYPTR(hh, t->row[by], r->name, len, r);
	return r;
}

static void touch_row(struct limits *t, enum limit_by by, struct limits_row *r, int64_t wall_ms)
{
	r->seen_ms = wall_ms;
	if (r->suspended)
		return;
	list_move(&t->seen[by], &r->link);
}

/* No row says what is to be done about it. */
static const struct conf_limit unsaid = {.action = LIMIT_DEFER};

static void read_row(const char *row, struct limit_value *v)
{
	struct buf why = {0};
	const char *bad = limit_value_parse(row, v, &why);
	assert(!bad); /* it was checked when the table was read, or the server answered */
	(void)bad;
	buf_fini(&why);
}

static void take_value(struct conf_limit *l, const struct limit_value *v)
{
	l->messages = v->messages;
	if (v->of_recipients)
		l->recipients = v->recipients;
}

/* False: there is no row. */
static bool find_value(const struct conf *c, const char *login, const struct limits_row *r,
		       struct limit_value *v)
{
	struct table_origin origin;
	if (r && r->was_said && tables_asked(c->tables, TABLE_LIMITS)) {
		*v = r->said;
		return r->has_limits;
	}
	char *row = tables_get(c->tables, TABLE_LIMITS, login, &origin);
	bool found = row;
	if (found)
		read_row(row, v);
	free(row);
	return found;
}

void limits_told(struct limits *t, const char *login, const char *row, int64_t now_us)
{
	struct limits_row *r = get_row(t, LIMIT_BY_LOGIN, login, now_us);
	r->was_said = true;
	r->has_limits = row;
	if (row)
		read_row(row, &r->said);
}

struct conf_limit limits_in_force(const struct conf *c, enum limit_by by, const char *name,
				  const struct limits_row *r)
{
	struct limit_value v;
	struct conf_limit l = c->limit_by[by] ? *c->limit_by[by] : unsaid;
	if (by == LIMIT_BY_LOGIN && find_value(c, name, r, &v))
		take_value(&l, &v);
	return l;
}

static const struct conf_rate *rate_of(const struct conf_limit *l, enum limit_of of)
{
	return of == LIMIT_MESSAGES ? &l->messages : &l->recipients;
}

/* Messages spent under a narrower limit, before a reload, makes nobody wait under this one. Several nodes may
 * have let pass more than there was room for, before they knew of each other: that is waited for. */
static int64_t wait_us(const struct limits *t, struct gcra *g, const struct conf_rate *rate,
		       int64_t now_us)
{
	if (g->next_us > now_us + (t->sharing.spent ? 2 : 1) * rate->per_ms * 1000)
		g->next_us = now_us;
	return gcra_due_us(g, rate, gcra_burst_us(rate)) - now_us;
}

static bool is_stricter(enum limit_action a, enum limit_action b)
{
	static const int rank[] = {[LIMIT_HOLD] = 0, [LIMIT_DEFER] = 1, [LIMIT_REJECT] = 2};
	assert(a < sizeof rank / sizeof *rank && b < sizeof rank / sizeof *rank);
	return rank[a] > rank[b];
}

static void take_over(struct limits_ruling *r, enum limit_by by, const struct conf_limit *l,
		      const struct conf_rate *rate, int64_t us)
{
	enum limit_action action = (enum limit_action)l->action;
	if (r->over && !is_stricter(action, r->action))
		return;
	r->over = true;
	r->by = by;
	r->action = action;
	r->rate = *rate;
	r->wait_ms = (us + 999) / 1000;
}

/* The row of each name, and whether its own limit has room. */
struct looked {
	struct limits_row *row;
	struct conf_rate whole, rate; /* of all nodes, and this one's; no events: no limit */
	bool room;
};

static void look_at_rate(const struct limits *t, enum limit_by by, const struct conf_limit *l,
			 enum limit_of of, int64_t now_us, struct looked *k,
			 struct limits_ruling *ruling)
{
	if (rate_of(l, of)->events == 0)
		return;
	k->whole = *rate_of(l, of);
	k->rate = gcra_part(&k->whole, t->parts);
	int64_t us = wait_us(t, &k->row->spent[of], &k->rate, now_us);
	assert(k->rate.events > 0 && k->rate.per_ms > 0);
	k->room = us <= 0;
	if (us > 0)
		take_over(ruling, by, l, &k->whole, us);
}

/* The client is over its limit, as far as is known here. */
static void ask_others(const struct limits *t, enum limit_by by, enum limit_of of, struct looked *k,
		       int64_t now_us)
{
	if (!t->sharing.spent || now_us < k->row->looked_us + LIMITS_LOOK_US)
		return;
	k->row->looked_us = now_us;
	t->sharing.spent(t->sharing.owner, by, of, k->row, &k->whole, 0);
}

static void count_one(const struct limits *t, enum limit_by by, enum limit_of of, struct looked *k,
		      int64_t now_us)
{
	gcra_count(&k->row->spent[of], &k->rate, now_us);
	if (!t->sharing.spent)
		return;
	k->row->told[of]++;
	t->sharing.spent(t->sharing.owner, by, of, k->row, &k->whole, 1);
}

static void count_event(const struct limits *t, struct looked k[LIMIT_BY_COUNT], enum limit_of of,
			int64_t now_us, int64_t wall_ms, const struct limits_ruling *ruling)
{
	bool passes = !ruling->over || ruling->action == LIMIT_HOLD;
	assert(passes || k[ruling->by].row);
	if (!passes)
		figures_count(&k[ruling->by].row->figures, LOGIN_REFUSED, 1, wall_ms);
	for (int by = 0; by < LIMIT_BY_COUNT; by++)
		if (k[by].room && passes)
			count_one(t, (enum limit_by)by, of, &k[by], now_us);
		else if (k[by].whole.events > 0 && !k[by].room)
			ask_others(t, (enum limit_by)by, of, &k[by], now_us);
}

void limits_judge(struct limits *t, const struct conf *conf, enum limit_of of,
		  const char *const name[LIMIT_BY_COUNT], int64_t now_us, int64_t wall_ms,
		  struct limits_ruling *ruling)
{
	struct looked looked[LIMIT_BY_COUNT] = {0};
	*ruling = (struct limits_ruling){0};
	for (int i = 0; i < LIMIT_BY_COUNT; i++) {
		enum limit_by by = (enum limit_by)i;
		struct looked *k = &looked[by];
		if (!name[by] || (by != LIMIT_BY_LOGIN && !conf->limit_by[by]))
			continue;
		k->row = get_row(t, by, name[by], now_us);
		touch_row(t, by, k->row, wall_ms);
		ruling->suspended = k->row->suspended;
		if (ruling->suspended) {
			figures_count(&k->row->figures, LOGIN_REFUSED, 1, wall_ms);
			return;
		}
		const struct conf_limit l = limits_in_force(conf, by, name[by], k->row);
		look_at_rate(t, by, &l, of, now_us, k, ruling);
	}
	count_event(t, looked, of, now_us, wall_ms, ruling);
}

void limits_logged_in(struct limits *t, const char *login, int64_t now_us, int64_t wall_ms)
{
	touch_row(t, LIMIT_BY_LOGIN, get_row(t, LIMIT_BY_LOGIN, login, now_us), wall_ms);
}

void limits_accepted(struct limits *t, const char *login, uint32_t nrcpt, int64_t wall_ms)
{
	struct limits_row *r = limits_find(t, LIMIT_BY_LOGIN, login);
	if (!r)
		return;
	figures_count(&r->figures, LOGIN_MESSAGES, 1, wall_ms);
	figures_count(&r->figures, LOGIN_RECIPIENTS, nrcpt, wall_ms);
}

void limits_failed(struct limits *t, const char *login, int64_t wall_ms)
{
	struct limits_row *r = limits_find(t, LIMIT_BY_LOGIN, login);
	if (!r)
		return;
	figures_count(&r->figures, LOGIN_FAILURES, 1, wall_ms);
	touch_row(t, LIMIT_BY_LOGIN, r, wall_ms);
}

void limits_suspend(struct limits *t, const char *login, bool suspended)
{
	struct limits_row *r = suspended ? get_row(t, LIMIT_BY_LOGIN, login, 0)
					 : limits_find(t, LIMIT_BY_LOGIN, login);
	if (!r || r->suspended == suspended)
		return;
	r->suspended = suspended;
	list_remove(&r->link);
	if (!suspended)
		list_append(&t->seen[LIMIT_BY_LOGIN], &r->link);
}

bool limits_reset(struct limits *t, const char *login)
{
	struct limits_row *r = limits_find(t, LIMIT_BY_LOGIN, login);
	if (!r)
		return false;
	memset(r->spent, 0, sizeof r->spent);
	for (int of = 0; t->sharing.forget && of < LIMIT_OF_COUNT; of++)
		t->sharing.forget(t->sharing.owner, LIMIT_BY_LOGIN, (enum limit_of)of, r);
	r->figures = (struct figures){0};
	return true;
}

void limits_total(struct limits *t, enum limit_by by, enum limit_of of, const char *name,
		  const struct conf *conf, int64_t next_us, uint64_t through)
{
	struct limits_row *r = limits_find(t, by, name);
	const struct conf_limit l = limits_in_force(conf, by, name, r);
	if (!r || rate_of(&l, of)->events == 0)
		return;
	/* A row that was dropped and is new has told of less. */
	uint64_t since = r->told[of] > through ? r->told[of] - through : 0;
	r->spent[of].next_us = next_us + (int64_t)since * gcra_interval_us(rate_of(&l, of));
}

static void write_row(const struct limits_row *r, struct buf *to)
{
	if (!figures_any(&r->figures) || strchr(r->name, '\n'))
		return;
	buf_printf(to, "%" PRId64 " ", r->seen_ms);
	figures_write(&r->figures, to);
	buf_printf(to, " %s\n", r->name);
}

void limits_write(const struct limits *t, struct buf *to)
{
	const struct limits_row *first = t->row[LIMIT_BY_LOGIN];
	size_t over = 0;
	if (HASH_COUNT(first) > LIMITS_KEPT_MAX)
		over = HASH_COUNT(first) - LIMITS_KEPT_MAX;
	for (const struct limits_row *r = first; r; r = r->hh.next)
		if (r->suspended)
			write_row(r, to);
	list_each (link, tmp, &t->seen[LIMIT_BY_LOGIN])
		if (over > 0)
			over--;
		else
			write_row(list_entry(link, struct limits_row, link), to);
}

static void read_kept_row(struct limits *t, const char *line)
{
	struct figures figures;
	int64_t seen_ms;
	bool ok = figures_number(&line, INT64_MAX, &seen_ms) && figures_read(&figures, &line) &&
		  line[0] == ' ' && line[1] != '\0';
	if (!ok)
		return;
	struct limits_row *r = get_row(t, LIMIT_BY_LOGIN, line + 1, 0);
	r->figures = figures;
	touch_row(t, LIMIT_BY_LOGIN, r, seen_ms);
}

void limits_read(struct limits *t, const char *text)
{
	for (char *line; (line = words_line(&text)); free(line))
		read_kept_row(t, line);
}
