/* SPDX-License-Identifier: ISC */
/* What may happen to a queue: everything that its neighbours can ask of it, and time. */
#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "tests/unit/spool/edges.h"
#include "tests/unit/spool/world_core.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_MS = 20 };

void world_credit(struct world *w, int64_t n)
{
	struct spool_credit *c = mem_zalloc(sizeof *c);
	c->note.type = SPOOL_CREDIT;
	c->n = n;
	world_post(w, &c->note);
}

/* The content of a large message comes in pieces; false: the disk would not take it. */
static bool write_file(struct world *w, struct spool_store *s, const struct promise *l)
{
	struct content *c = promise_content(l);
	s->file = spool_file_new(w->spool, l->id);
	bool ok = s->file;
	for (uint64_t at = 0; ok && at < c->size; at += 4000)
		ok = spool_file_write(s->file, c->memory + at,
				      c->size - at < 4000 ? (size_t)(c->size - at) : 4000) == 0;
	content_unref(c);
	if (!ok && !w->fails)
		world_broken("a large content can't be written", l);
	return ok;
}

void world_lay(uint64_t id)
{
	char name[IDENT_TEXT];
	char *path = mem_printf("/var/spool/sluice/taken/%s", ident_text(id, name));
	int fd = disk_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL);
	int taken = disk_open(AT_FDCWD, "/var/spool/sluice/taken", O_RDONLY | O_DIRECTORY);
	if (fd < 0 || taken < 0 || disk_sync(taken) != 0)
		world_broken("a file can't be laid into taken/", NULL);
	disk_close(fd);
	disk_close(taken);
	free(path);
}

static bool store(struct world *w, uint64_t replaces, bool wait)
{
	if (w->promises.n == PROMISES)
		return false;
	struct promise *l = promises_new_promise(&w->promises, ident_new(), clock_wall_ms(),
						 chance_next(&w->chance));
	struct spool_store *s = mem_zalloc(sizeof *s);
	s->note.type = SPOOL_STORE;
	s->reply_to = w->client;
	s->id = l->id;
	s->replaces = l->replaces = replaces;
	s->generation = w->generation;
	s->promised = w->promised && !replaces;
	s->taken = w->taken && !replaces;
	if (s->taken)
		world_lay(l->id);
	l->deleting = w->deleting_all > 0;
	if (promise_large(l) && (!write_file(w, s, l) || chance_percent(&w->chance, 10))) {
		l->state = PROMISE_REFUSED;
		spool_file_discard(&s->file);
		free(s);
		return false;
	}
	s->envelope = promise_envelope(l);
	if (!s->file)
		s->content = promise_content(l);
	world_post(w, &s->note);
	if (!wait)
		return true;
	edges_settle();
	if (l->state == PROMISE_OFFERED)
		world_broken("it was not answered", l);
	return l->state == PROMISE_STORED;
}

bool world_store(struct world *w, bool wait)
{
	return store(w, 0, wait);
}

static bool settled(const struct recipient *r)
{
	return r->done ||
	       (r->last && (r->last->class == VERDICT_SENT || r->last->class == VERDICT_FAILED));
}

/* The replies of one transaction. */
static void deliver(struct world *w, struct held *h)
{
	struct spool_delivered *d = mem_zalloc(sizeof *d + h->envelope->nrcpt * sizeof d->of[0]);
	d->note.type = SPOOL_DELIVERED;
	d->id = h->promise->id;
	enum verdict_class class = chance_percent(&w->chance, 70) ? VERDICT_SENT : VERDICT_FAILED;
	struct verdict *v = promises_verdict(&w->promises, class);
	for (uint32_t i = 0; i < h->envelope->nrcpt; i++) {
		struct recipient *r = &h->envelope->rcpt[i];
		if (settled(r) || chance_percent(&w->chance, 30))
			continue;
		promises_said(&w->promises, h->promise, i, v);
		d->of[d->n].recipient = i;
		d->of[d->n++].verdict = verdict_ref(v);
		verdict_unref(r->last);
		r->last = verdict_ref(v);
		r->tries++;
		r->done = class == VERDICT_FAILED || !(r->notify & NOTIFY_SUCCESS);
	}
	verdict_unref(v);
	if (d->n > 0)
		world_post(w, &d->note);
	else
		free(d);
}

static void release(struct world *w, int i, bool keep)
{
	struct held *h = &w->held[i];
	struct spool_release *r = mem_zalloc(sizeof *r);
	r->note.type = SPOOL_RELEASE;
	r->id = h->promise->id;
	if (keep && !h->cancelled && promises_kept(&w->promises, h->promise, h->envelope)) {
		r->envelope = h->envelope;
		r->site = (uint16_t)(h->promise->salt % 3);
		r->parked = r->site > 0 && h->envelope->rounds % 2 == 0;
		h->envelope = NULL;
	} else {
		r->delivers = h->promise->salt % 2 > 0;
		promises_finish(&w->promises, h->promise, r->delivers);
	}
	world_drop_held(w, i);
	world_post(w, &r->note);
}

/* A round ends: those that are left have been tried in vain, or not at all. */
static void keep(struct world *w, int i)
{
	static const uint32_t delay_ms[] = {1, 50, 1500, 60000, 1000000};
	struct envelope *e = w->held[i].envelope;
	if (envelope_open(e) == 0 || !promises_room(w->held[i].promise)) {
		release(w, i, false);
		return;
	}
	for (uint32_t k = 0; k < e->nrcpt; k++) {
		struct recipient *r = &e->rcpt[k];
		if (settled(r) || chance_percent(&w->chance, 40))
			continue;
		verdict_unref(r->last);
		r->last = promises_verdict(&w->promises, chance_percent(&w->chance, 80)
								 ? VERDICT_DEFERRED
								 : VERDICT_IN_DOUBT);
		r->tries++;
	}
	e->rounds++;
	e->warned |= chance_percent(&w->chance, 10);
	e->due_ms = clock_wall_ms() + delay_ms[chance_below(&w->chance, 5)];
	release(w, i, true);
}

static void act_store(struct world *w)
{
	world_store(w, false);
}

/* One that is on hold, as it was shown, or it is asked for first. */
static void act_replace(struct world *w)
{
	uint64_t id = w->shown;
	w->shown = 0;
	if (id) {
		store(w, id, false);
		return;
	}
	for (int i = 0; i < w->promises.n; i++)
		if (promise_held(&w->promises.promise[i]) && !w->promises.promise[i].finish)
			id = w->promises.promise[i].id;
	if (id)
		world_ask(w, SPOOL_SHOW, id);
}

static void act_turn(struct world *w)
{
	edges_turn(spool_loop(w->spool));
}

static void act_settle(struct world *w)
{
	(void)w;
	edges_settle();
}

/* A verdict waits for company, but not for long. */
static void act_pass(struct world *w)
{
	uint32_t seq = w->promises.seq++;
	int64_t ms = 1 + chance_below(&w->chance, 40);
	edges_pass(ms);
	if (ms >= GROUP_MS && !w->fails)
		promises_firm_verdicts(&w->promises, seq);
}

static void act_credit(struct world *w)
{
	world_credit(w, 1 + chance_below(&w->chance, 6));
}

static void act_deliver(struct world *w)
{
	if (w->nheld > 0)
		deliver(w, &w->held[chance_below(&w->chance, (uint32_t)w->nheld)]);
}

static void act_keep(struct world *w)
{
	if (w->nheld > 0)
		keep(w, (int)chance_below(&w->chance, (uint32_t)w->nheld));
}

static void act_finish(struct world *w)
{
	if (w->nheld > 0)
		release(w, (int)chance_below(&w->chance, (uint32_t)w->nheld), false);
}

void world_finish_last(struct world *w)
{
	release(w, w->nheld - 1, false);
}

static void act_recover(struct world *w)
{
	edges_threads((int)chance_below(&w->chance, 8));
}

static void act_ask(struct world *w)
{
	static const int op[] = {SPOOL_LIST, SPOOL_SHOW, SPOOL_SHOW, SPOOL_FLUSH};
	uint32_t which = chance_below(&w->chance, 4);
	uint32_t n = (uint32_t)w->promises.n;
	world_ask(w, op[which],
		  n && which ? w->promises.promise[chance_below(&w->chance, n)].id : 0);
}

static void act_unpark(struct world *w)
{
	struct spool_unpark *u = mem_zalloc(sizeof *u);
	u->note.type = SPOOL_UNPARK;
	u->site = (uint16_t)(1 + chance_below(&w->chance, 3)); /* there is no mail of the last */
	u->most = chance_below(&w->chance, 4);
	world_post(w, &u->note);
}

static void act_delete(struct world *w)
{
	if (!w->listed || w->promises.n == 0)
		return;
	bool all = chance_percent(&w->chance, 10);
	struct promise *one =
		&w->promises.promise[chance_below(&w->chance, (uint32_t)w->promises.n)];
	for (int i = 0; i < w->promises.n; i++)
		w->promises.promise[i].deleting |= all || &w->promises.promise[i] == one;
	w->deleting_all += all;
	world_ask(w, SPOOL_DELETE, all ? 0 : one->id);
}

static void act_long(struct world *w)
{
	world_pass_long(w);
}

static void act_far(struct world *w)
{
	(void)w;
	edges_pass(70000);
}

static const struct act {
	const char *name;
	void (*act)(struct world *);
	uint32_t weight;
} acts[] = {
	{"store", act_store, 24}, {"turn", act_turn, 14},    {"settle", act_settle, 14},
	{"pass", act_pass, 8},	  {"credit", act_credit, 6}, {"deliver", act_deliver, 12},
	{"keep", act_keep, 8},	  {"finish", act_finish, 8}, {"recover", act_recover, 8},
	{"ask", act_ask, 3},	  {"delete", act_delete, 2}, {"long", act_long, 2},
	{"far", act_far, 1},	  {"unpark", act_unpark, 3}, {"replace", act_replace, 10},
};

enum { ACTS = sizeof acts / sizeof acts[0] };

static void run(struct world *w, const struct act *a)
{
	if (world_loud)
		fprintf(stderr, "%s\n", a->name);
	a->act(w);
}

void world_do(struct world *w, const char *name)
{
	int i = 0;
	while (strcmp(acts[i].name, name) != 0)
		assert(++i < ACTS);
	run(w, &acts[i]);
}

void world_step(struct world *w)
{
	enum { DOUBLINGS = 5 };
	struct chance c = {.state = w->uneven};
	uint32_t weight[ACTS];
	for (int k = 0; k < ACTS; k++)
		weight[k] = acts[k].weight << (w->uneven ? chance_below(&c, DOUBLINGS) : 0);
	run(w, &acts[chance_draw(&w->chance, weight, ACTS)]);
}
