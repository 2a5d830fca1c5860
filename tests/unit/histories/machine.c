/* SPDX-License-Identifier: ISC */
#include "tests/unit/histories/machine.h"

#include "base/clock.h"
#include "base/fence.h"
#include "base/ident.h"
#include "base/mem.h"
#include "replica/life.h"
#include "replica/membership.h"
#include "replica/replica.h"
#include "spool/spool.h"
#include "tests/unit/histories/fibers.h"
#include "tests/unit/histories/ledger.h"
#include "tests/unit/histories/seams.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER "/queue"

enum { AGAIN_US = 1000000, CREDIT = 6, SYNC_MOST_US = 3000, MUCH = 100000, NOTE_STOP = 1 };

struct machine machine[MACHINES];
int machines;

static void set(char **text, const char *to)
{
	free(*text);
	*text = mem_strdup(to);
}

static struct conf *conf_for(const struct machine *m, const struct conf_cluster *like,
			     int64_t segment_bytes)
{
	struct conf *c = conf_defaults();
	set(&c->spool, FOLDER);
	set(&c->cluster.name, m->name);
	set(&c->cluster.nats, "127.0.0.1:4222");
	c->cluster.replicate = like->replicate;
	c->cluster.adopt_after = like->adopt_after;
	c->cluster.replicate_timeout = like->replicate_timeout;
	c->cluster.degrade = like->degrade;
	c->segment_size = segment_bytes;
	return c;
}

static struct memdisk *disk_new(uint64_t seed)
{
	struct memdisk *d = memdisk_new();
	memdisk_chance(d, seed);
	memdisk_use(d, NULL, NULL);
	disk_make_folder(AT_FDCWD, FOLDER);
	int root = disk_open(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY);
	disk_sync(root);
	disk_close(root);
	fibers_enter(FIBER_NOBODY); /* whose disk it is not */
	return d;
}

void machines_begin(int n, uint64_t seed, const struct conf_cluster *like, int64_t segment_bytes)
{
	memset(machine, 0, sizeof machine);
	machines = n;
	for (int i = 0; i < n; i++) {
		struct machine *m = &machine[i];
		m->number = i;
		m->chance.state = seed + (uint64_t)i;
		snprintf(m->name, sizeof m->name, "n%d", i);
		m->conf = conf_for(m, like, segment_bytes);
		m->disk = disk_new(seed + 100 + (uint64_t)i);
		m->listed = -1;
	}
}

bool machine_runs(const struct machine *m)
{
	return m->state != MACHINE_OFF;
}

static void is(struct machine *m, enum machine_state state)
{
	m->state = state;
	m->since_us = fibers.now_us;
}

/* Its end. */

static void drop_held(struct machine *m, int i)
{
	envelope_free(&m->held[i].envelope);
	content_unref(m->held[i].content);
	m->held[i] = m->held[--m->nheld];
}

static void start_again(void *what)
{
	struct machine *m = what;
	if (m->wanted && !m->gone && m->state == MACHINE_OFF)
		machine_start(m);
}

static void is_off(struct machine *m)
{
	memdisk_abandon(m->disk);
	m->nheld = 0;
	m->kill_in = 0;
	m->spool = NULL;
	m->replica = NULL;
	m->node = NULL;
	m->main = m->client = NULL;
	is(m, MACHINE_OFF);
	fibers_after(AGAIN_US, FIBER_NOBODY, start_again, m);
}

void machine_kill(struct machine *m)
{
	if (m->state == MACHINE_OFF)
		return;
	fibers_kill(m->number);
	is_off(m);
}

static void bury(void *what)
{
	machine_kill(what);
}

void machine_disk(struct machine *m, struct memdisk *disk)
{
	assert(m->state == MACHINE_OFF);
	memdisk_free(&m->disk);
	m->disk = disk ? disk : disk_new(chance_next(&m->chance));
	fibers_enter(FIBER_NOBODY); /* whoever is entered next has this one */
}

void machine_power_cut(struct machine *m)
{
	struct memdisk *found = memdisk_cut(m->disk, &m->chance);
	machine_kill(m);
	machine_disk(m, found);
}

/* Each call to the disk is a moment at which others go on, or at which it dies. */
static void before_call(void *owner, enum memdisk_call call)
{
	struct machine *m = owner;
	if (!fiber_runs())
		return;
	if (m->kill_in > 0 && --m->kill_in == 0) {
		fibers_after(0, FIBER_NOBODY, bury, m);
		fibers_kill_self();
	}
	if (call == CALL_DATASYNC || call == CALL_SYNC)
		fiber_sleep(chance_below(&fibers.chance, SYNC_MOST_US));
	else if (chance_percent(&fibers.chance, 5))
		fiber_wait(NULL, NULL, fibers.now_us);
}

void machine_enter(int of)
{
	seams_enter(of);
	if (of >= 0)
		memdisk_use(machine[of].disk, before_call, &machine[of]);
}

/* Clients and qmgr. */

static void hear_stored(struct spool_store *s)
{
	struct sheet *sheet = ledger_find(s->id);
	if (s->stored)
		ledger_promised(s->id);
	else if (sheet)
		sheet->refused = true;
	free(s);
}

static void hear_arrival(struct machine *m, struct spool_arrival *a)
{
	struct sheet *sheet = ledger_find(a->envelope->id);
	if (!sheet)
		ledger_broken(BROKEN_STRANGER, "it comes to qmgr of %s", m->name);
	assert(m->nheld < MACHINE_HELD);
	m->held[m->nheld++] = (struct held){.envelope = a->envelope, .content = a->content};
	free(a);
}

static void hear_cancel(struct machine *m, const struct spool_cancel *c)
{
	for (int i = 0; i < m->nheld; i++) {
		if (m->held[i].envelope->id != c->id)
			continue;
		m->held[i].cancelled = true;
		m->held[i].keep = c->keep;
	}
}

static void hear_moved(struct machine *m, struct spool_moved *moved)
{
	for (int i = 0; i < m->nheld; i++) {
		if (m->held[i].envelope->id != moved->id)
			continue;
		content_unref(m->held[i].content);
		m->held[i].content = moved->content;
		return;
	}
	content_unref(moved->content);
}

static void hear_command(struct machine *m, struct spool_command *c)
{
	struct sheet *s = c->op == SPOOL_DELETE ? ledger_find(c->id) : NULL;
	if (s) {
		s->deleting--;
		s->deleted |= c->affected > 0;
	}
	if (c->op == SPOOL_LIST)
		m->listed = c->nrow;
	spool_command_free(&c);
}

static void drop(struct note *note)
{
	struct spool_command *c = (struct spool_command *)note;
	if (note->type == SPOOL_COMMAND) {
		spool_command_free(&c);
		return;
	}
	if (note->type == SPOOL_MOVED)
		content_unref(((struct spool_moved *)note)->content);
	if (note->type == SPOOL_ARRIVAL) {
		envelope_free(&((struct spool_arrival *)note)->envelope);
		content_unref(((struct spool_arrival *)note)->content);
	}
	free(note);
}

static void hear(void *owner, struct note *note)
{
	struct machine *m = owner;
	if (note->type == SPOOL_STORED) {
		hear_stored((struct spool_store *)note);
	} else if (m->closed) {
		drop(note);
	} else if (note->type == SPOOL_ARRIVAL) {
		hear_arrival(m, (struct spool_arrival *)note);
	} else if (note->type == SPOOL_COMMAND) {
		hear_command(m, (struct spool_command *)note);
	} else if (note->type == SPOOL_MOVED) {
		hear_moved(m, (struct spool_moved *)note);
	} else {
		if (note->type == SPOOL_CANCEL)
			hear_cancel(m, (struct spool_cancel *)note);
		free(note);
	}
}

static void heard_all(void *owner)
{
	struct machine *m = owner;
	if (m->eager && !m->closed)
		machine_work_all(m);
}

/* Main. */

static void hear_main(void *owner, struct note *note)
{
	struct machine *m = owner;
	struct node_order *o = (struct node_order *)note;
	struct node_view *v = (struct node_view *)note;
	if (note->type == NODE_VIEW) {
		node_view_free(&v);
	} else if (note->type == NODE_ORDER) {
		if (o->op == NODE_MAY_DRAIN && o->done && m->state == MACHINE_SERVES) {
			node_drain(m->node);
			m->wanted = false;
			is(m, MACHINE_ENDS);
		}
		node_order_free(&o);
	} else {
		m->again |= note->type == NODE_LOST && m->state != MACHINE_ENDS;
		if (m->state == MACHINE_SERVES)
			is(m, MACHINE_ENDS);
		free(note);
	}
}

static void credit(struct machine *m, int64_t n)
{
	struct spool_credit *c = mem_zalloc(sizeof *c);
	c->note.type = SPOOL_CREDIT;
	c->n = n;
	spool_post(m->spool, &c->note);
}

void machine_credit(struct machine *m, int64_t n)
{
	fibers_enter(m->number);
	credit(m, n);
}

static bool make_parts(struct machine *m, struct buf *error)
{
	if (!life_put_aside(m->conf->spool, error) || !membership_may_start(m->conf, error))
		return false;
	m->spool = spool_new(m->conf, m->client, error);
	m->replica = m->spool ? replica_new(m->conf, m->spool) : NULL;
	m->node = m->spool ? node_new(m->conf, m->spool, m->replica, m->main, error) : NULL;
	return m->spool && m->node;
}

static bool begin(struct machine *m)
{
	struct buf error = {0};
	seams_process_begins(m->number);
	is(m, MACHINE_BEGINS);
	m->again = m->closed = false;
	m->main = loop_new("main", hear_main, NULL, m);
	m->client = loop_new("client", hear, heard_all, m);
	bool ok = make_parts(m, &error);
	snprintf(m->error, sizeof m->error, "%s", ok ? "" : buf_cstr(&error));
	m->starts_failed = ok ? 0 : m->starts_failed + 1;
	buf_fini(&error);
	return ok;
}

static void serve(struct machine *m)
{
	loop_start(m->client);
	replica_start(m->replica);
	node_watch(m->node, m->main);
	node_start(m->node);
	spool_start(m->spool);
	credit(m, CREDIT);
	node_wait(m->node);
	is(m, m->again || m->asked_to_end ? MACHINE_ENDS : MACHINE_SERVES);
	while (m->state == MACHINE_SERVES)
		ev_run(m->main->ev, EVRUN_ONCE);
	loop_stop(m->client);
	spool_stop(m->spool);
	node_interrupt(m->node);
	node_stop(m->node, replica_stop(m->replica, node_drains(m->node)));
}

static void end(struct machine *m)
{
	m->closed = true;
	node_free(&m->node);
	replica_free(&m->replica);
	while (m->nheld > 0)
		drop_held(m, 0);
	spool_free(&m->spool);
	loop_free(&m->client);
	loop_free(&m->main);
}

static void *relay(void *what)
{
	struct machine *m = what;
	do {
		if (begin(m))
			serve(m);
		end(m);
	} while (m->again && !m->asked_to_end);
	fibers_after(0, FIBER_NOBODY, bury, m);
	fiber_wait(NULL, NULL, INT64_MAX);
	return NULL;
}

void machine_start(struct machine *m)
{
	m->wanted = true;
	m->asked_to_end = false;
	if (m->state != MACHINE_OFF)
		return;
	is(m, MACHINE_BEGINS);
	m->incomplete = false;
	m->open_us = fibers.now_us;
	fiber_new(m->number, "relay", relay, m);
}

/* Until then SIGTERM waits, as in the relay. */
void machine_stop(struct machine *m)
{
	m->wanted = false;
	m->asked_to_end = true;
	if (m->state != MACHINE_SERVES)
		return;
	struct note *note = mem_zalloc(sizeof *note);
	note->type = NOTE_STOP;
	loop_post(m->main, note);
}

bool machine_fence_open(struct machine *m)
{
	fibers_enter(m->number);
	return fence_open();
}

/* What is done with it. */

static bool write_file(struct machine *m, struct spool_store *s, const struct sheet *sheet)
{
	s->file = spool_file_new(m->spool, sheet->id);
	if (!s->file)
		return false;
	char *bytes = sheet_bytes(sheet);
	int error = spool_file_write(s->file, bytes, sheet_size(sheet));
	free(bytes);
	if (error)
		spool_file_discard(&s->file);
	return error == 0;
}

static struct spool_store *new_store(struct machine *m, uint64_t salt)
{
	struct sheet *sheet = ledger_new(ident_new(), salt, m->number);
	if (!sheet)
		return NULL;
	struct spool_store *s = mem_zalloc(sizeof *s);
	s->note.type = SPOOL_STORE;
	s->id = sheet->id;
	s->promised = true;
	if (sheet_large(sheet) && !write_file(m, s, sheet)) {
		sheet->refused = true;
		free(s);
		return NULL;
	}
	s->envelope = sheet_envelope(sheet);
	if (!s->file)
		s->content = content_in_memory(sheet_bytes(sheet), sheet_size(sheet));
	return s;
}

bool machine_store(struct machine *m, uint64_t salt)
{
	fibers_enter(m->number);
	if (m->state != MACHINE_SERVES || fibers_paused(m->number) || !spool_accepting(m->spool))
		return false;
	struct spool_store *s = new_store(m, salt);
	if (!s)
		return false;
	if (salt % 4 == 0)
		s->with = new_store(m, salt * 7 + 3);
	if (s->with)
		ledger_find(s->id)->with = s->with->id;
	s->reply_to = m->client;
	spool_post(m->spool, &s->note);
	return true;
}

static void release(struct machine *m, int i, bool keep)
{
	struct held *h = &m->held[i];
	struct spool_release *r = mem_zalloc(sizeof *r);
	r->note.type = SPOOL_RELEASE;
	r->id = h->envelope->id;
	r->delivers = h->delivers;
	if (keep) {
		r->envelope = h->envelope;
		h->envelope = NULL;
	} else {
		ledger_finishing(r->id, m->number);
	}
	drop_held(m, i);
	spool_post(m->spool, &r->note);
}

static void drop_verdicts(struct spool_delivered *d)
{
	for (uint32_t i = 0; i < d->n; i++)
		verdict_unref(d->of[i].verdict);
	free(d);
}

/* The end of its content is sent, and the host says that it has it. */
static bool send_held(struct machine *m, struct held *h, bool all)
{
	const struct sheet *sheet = ledger_find(h->envelope->id);
	if (!fence_open() || !sheet || !ledger_check_content(sheet, h->content))
		return false;
	struct spool_delivered *d = mem_zalloc(sizeof *d + h->envelope->nrcpt * sizeof d->of[0]);
	struct verdict *v = verdict_new(VERDICT_SENT, 250, NULL, "host", "taken");
	d->note.type = SPOOL_DELIVERED;
	d->id = h->envelope->id;
	for (uint32_t i = 0; i < h->envelope->nrcpt; i++) {
		struct recipient *r = &h->envelope->rcpt[i];
		if (r->done || (r->last && r->last->class == VERDICT_SENT) ||
		    (!all && chance_percent(&m->chance, 40)))
			continue;
		ledger_sent(d->id, i, m->number);
		d->of[d->n].recipient = i;
		d->of[d->n++].verdict = verdict_ref(v);
		verdict_unref(r->last);
		r->last = verdict_ref(v);
		r->done = true;
		r->tries++;
	}
	verdict_unref(v);
	h->delivers = d->n == h->envelope->nrcpt && d->id % 2 > 0;
	if (d->n > 0 && !h->delivers)
		spool_post(m->spool, &d->note);
	else
		drop_verdicts(d);
	return true;
}

static bool all_sent(const struct envelope *e)
{
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (!e->rcpt[i].done &&
		    !(e->rcpt[i].last && e->rcpt[i].last->class == VERDICT_SENT))
			return false;
	return true;
}

static void defer(struct machine *m, int i)
{
	static const uint32_t delay_ms[] = {200, 1500, 4000, 20000, 400000};
	struct envelope *e = m->held[i].envelope;
	for (uint32_t k = 0; k < e->nrcpt; k++) {
		struct recipient *r = &e->rcpt[k];
		if (r->done)
			continue;
		verdict_unref(r->last);
		r->last = verdict_new(VERDICT_DEFERRED, 451, NULL, "host", "later");
		r->tries++;
	}
	e->rounds++;
	e->due_ms = clock_wall_ms() + delay_ms[chance_below(&m->chance, m->eager ? 2 : 5)];
	release(m, i, true);
}

static bool may_work(struct machine *m)
{
	fibers_enter(m->number);
	return m->state == MACHINE_SERVES && !m->closed && m->nheld > 0 &&
	       !fibers_paused(m->number);
}

void machine_work(struct machine *m)
{
	if (!may_work(m))
		return;
	int i = (int)chance_below(&m->chance, (uint32_t)m->nheld);
	struct held *h = &m->held[i];
	bool sent = !h->cancelled && chance_percent(&m->chance, 60) &&
		    send_held(m, h, chance_percent(&m->chance, 60));
	if (h->cancelled)
		release(m, i, h->keep && !all_sent(h->envelope));
	else if (all_sent(h->envelope) && (chance_percent(&m->chance, 85) || h->delivers))
		release(m, i, false);
	else if (!all_sent(h->envelope) && chance_percent(&m->chance, sent ? 30 : 60))
		defer(m, i);
}

void machine_work_all(struct machine *m)
{
	if (!may_work(m))
		return;
	for (int i = m->nheld - 1; i >= 0; i--) {
		struct held *h = &m->held[i];
		if (h->cancelled)
			release(m, i, h->keep && !all_sent(h->envelope));
		else if (all_sent(h->envelope) || (send_held(m, h, true) && all_sent(h->envelope)))
			release(m, i, false);
		else
			defer(m, i);
	}
}

void machine_ask(struct machine *m, int order, uint64_t id)
{
	fibers_enter(m->number);
	if (m->state != MACHINE_SERVES)
		return;
	struct spool_command *c = spool_command_new(order, m->client, NULL);
	struct sheet *s = order == SPOOL_DELETE ? ledger_find(id) : NULL;
	if (s)
		s->deleting++;
	c->id = id;
	c->limit = MUCH;
	loop_post(spool_loop(m->spool), &c->note);
}

void machine_order(struct machine *m, enum node_op op, const char *name)
{
	fibers_enter(m->number);
	if (m->state == MACHINE_SERVES)
		node_post(m->node, node_order_new(op, name, m->main, m));
}

void machine_drain(struct machine *m)
{
	machine_order(m, NODE_MAY_DRAIN, NULL);
}

bool machine_whole(struct machine *m)
{
	fibers_enter(m->number);
	return m->state == MACHINE_SERVES && replica_whole(m->replica);
}
