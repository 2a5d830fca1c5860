/* SPDX-License-Identifier: ISC */
#include "tests/unit/spool/world_core.h"

#include "base/clock.h"
#include "base/fence.h"
#include "base/ident.h"
#include "base/mem.h"
#include "tests/unit/spool/edges.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SEGMENT_BYTES = 24 << 10,
	SMALL_BYTES = 18 << 10, /* more than half of it for records */
	MUCH = 1000000,
	SLOW_PERCENT = 50,
	LAZY_MS = 2500,
	FAR_MS = 4000000
};

uint64_t world_seed;
bool world_loud;

void world_broken(const char *what, const struct promise *l)
{
	char id[IDENT_TEXT] = "";
	if (l)
		ident_text(l->id, id);
	fprintf(stderr, "SEED=%llu: %s %s\n", (unsigned long long)world_seed, what, id);
	abort();
}

void world_must(const char *wrong, const struct promise *l)
{
	if (wrong)
		world_broken(wrong, l);
}

static struct promise *promise_of(struct world *w, uint64_t id)
{
	struct promise *l = promises_find(&w->promises, id);
	if (!l)
		world_broken("a message that nobody has brought", NULL);
	return l;
}

static void hear_stored(struct world *w, struct spool_store *s)
{
	struct promise *l = promise_of(w, s->id);
	if (s->envelope || s->content || s->file)
		world_broken("an answer still has what was stored", l);
	if (!s->stored && !(s->outdated && l->replaces) && !(w->fails && memdisk_failed(w->disk)) &&
	    fence_open())
		world_broken("refused without a reason", l);
	if (s->stored && l->replaces) {
		promises_finish(&w->promises, promise_of(w, l->replaces), false);
		w->nreplaced++;
	}
	if (s->stored)
		promises_firm_verdicts(&w->promises, l->version[0].seq);
	if (s->stored)
		l->answered = w->promises.seq++;
	if (l->state == PROMISE_OFFERED)
		l->state = s->stored ? PROMISE_STORED : PROMISE_REFUSED;
	free(s);
}

void world_drop_held(struct world *w, int i)
{
	struct held *h = &w->held[i];
	envelope_free(&h->envelope);
	content_unref(h->content);
	*h = w->held[--w->nheld];
}

/* The call that fails may be one by which it is read here. */
static void must_be_its_content(const struct world *w, const struct promise *l,
				const struct content *c)
{
	const char *wrong = promises_check_content(l, c);
	if (!w->fails || wrong != promises_unreadable)
		world_must(wrong, l);
}

static void hear_arrival(struct world *w, struct spool_arrival *a)
{
	struct promise *l = promise_of(w, a->envelope->id);
	for (int i = 0; i < w->nheld; i++)
		if (w->held[i].promise == l)
			world_broken("it came twice", l);
	world_must(l->seen ? promises_check(&w->promises, l, a->envelope)
			   : promises_seen(&w->promises, l, a->envelope),
		   l);
	must_be_its_content(w, l, a->content);
	if (a->envelope->not_before_ms > clock_wall_ms())
		world_broken("its sender wanted it sent later", l);
	w->held[w->nheld++] =
		(struct held){.promise = l, .envelope = a->envelope, .content = a->content};
	free(a);
}

static void hear_list(struct world *w, const struct spool_command *c)
{
	uint64_t before = 0;
	for (int i = 0; i < c->nrow; i++) {
		const struct envelope *e = c->row[i].envelope;
		struct promise *l = promise_of(w, e->id);
		if (e->id <= before)
			world_broken("listed twice, or out of order", l);
		before = e->id;
		world_must(l->seen ? promises_check(&w->promises, l, e)
				   : promises_seen(&w->promises, l, e),
			   l);
	}
	/* Whoever stops while the queue is still being read is answered from what is known. */
	if (w->stopping || (w->promises.vague && w->fails))
		return;
	for (int i = 0; !w->listed && i < w->promises.n; i++)
		if (!w->promises.promise[i].seen)
			world_must(promises_absent(&w->promises, &w->promises.promise[i]),
				   &w->promises.promise[i]);
	w->listed = true;
}

static void hear_show(struct world *w, const struct spool_command *c)
{
	if (c->nrow == 0 || w->fails)
		return;
	struct promise *l = promise_of(w, c->row[0].envelope->id);
	world_must(promises_check(&w->promises, l, c->row[0].envelope), l);
	if (c->row[0].queue == SPOOL_HOLD && !l->finish) {
		w->shown = l->id;
		w->generation = c->row[0].generation;
	}
	if (!c->row[0].content)
		world_broken("shown without its content", l);
	must_be_its_content(w, l, c->row[0].content);
}

/* What was deleted without waiting for qmgr is gone for good. */
static void hear_deleted(struct world *w, const struct spool_command *c)
{
	uint32_t before = (uint32_t)(uintptr_t)c->owner;
	w->deleting_all -= c->id == 0;
	if (w->fails || (w->stopping && !w->listed))
		return;
	promises_firm_all(&w->promises, before);
	struct promise *l = c->id ? promise_of(w, c->id) : NULL;
	if (l && c->affected == 1 && c->cancelled == 0)
		l->finished = true;
	for (int i = 0; c->id == 0 && c->cancelled == 0 && i < w->promises.n; i++) {
		l = &w->promises.promise[i];
		/* A large one may still be synced beside the queue, and is not in it then. */
		uint32_t there = promise_large(l) ? l->answered : l->version[0].seq;
		if (there < before && (there || !promise_large(l)))
			l->finished |= l->deleting;
	}
}

static void hear_command(struct world *w, struct spool_command *c)
{
	if (c->op == SPOOL_LIST)
		hear_list(w, c);
	else if (c->op == SPOOL_SHOW)
		hear_show(w, c);
	else if (c->op == SPOOL_DELETE)
		hear_deleted(w, c);
	w->unanswered--;
	spool_command_free(&c);
}

static void hear_cancel(struct world *w, const struct spool_cancel *c)
{
	for (int i = 0; i < w->nheld; i++)
		w->held[i].cancelled |= w->held[i].promise->id == c->id;
}

/* Its content lies somewhere else now, and is the same. */
static void hear_moved(struct world *w, struct spool_moved *m)
{
	for (int i = 0; i < w->nheld; i++) {
		if (w->held[i].promise->id != m->id)
			continue;
		must_be_its_content(w, w->held[i].promise, m->content);
		content_unref(w->held[i].content);
		w->held[i].content = m->content;
		return;
	}
	content_unref(m->content);
}

static void hear_unpark(const struct spool_unpark *u)
{
	if (u->parked > u->waiting || u->waiting > (u->site > 2 ? 0 : PROMISES))
		world_broken("more wait for a site than there are", NULL);
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
	struct world *w = owner;
	if (w->closed) {
		drop(note);
	} else if (note->type == SPOOL_STORED) {
		hear_stored(w, (struct spool_store *)note);
	} else if (note->type == SPOOL_ARRIVAL) {
		hear_arrival(w, (struct spool_arrival *)note);
	} else if (note->type == SPOOL_COMMAND) {
		hear_command(w, (struct spool_command *)note);
	} else {
		if (note->type == SPOOL_CANCEL)
			hear_cancel(w, (struct spool_cancel *)note);
		else if (note->type == SPOOL_MOVED)
			hear_moved(w, (struct spool_moved *)note);
		else if (note->type == SPOOL_UNPARK)
			hear_unpark((struct spool_unpark *)note);
		free(note);
	}
}

/* Damage that a cut alone has made must not cost a message that was promised. */
static void hear_log(void *owner, const struct edges_line *line)
{
	struct world *w = owner;
	uint64_t id;
	const char *text = edges_value(line, "id"), *tail = edges_value(line, "tail");
	if (world_loud && !w->closed) {
		fprintf(stderr, "log: %s", line->event);
		for (int i = 0; i < line->n; i++)
			fprintf(stderr, " %s=%s", line->key[i], line->value[i]);
		fputc('\n', stderr);
	}
	if (strcmp(line->event, "abandoned") == 0 && tail && strcmp(tail, "left") == 0)
		w->promises.tail_left = true;
	if (strcmp(line->event, "recover_failed") == 0 && !w->closed)
		w->promises.vague = true;
	w->promises.spoiled |= w->fails || memdisk_failed(w->disk);
	if (strcmp(line->event, "damage") == 0 && !w->closed && !w->promises.spoiled)
		world_broken("a power cut is taken for damage", NULL);
	const char *reason = edges_value(line, "reason");
	if (reason && strcmp(reason, "the segment is missing") == 0 && !w->closed)
		world_broken("a segment that went is missed", NULL);
	if (strcmp(line->event, "quarantined") != 0 || w->closed || w->fails || !text ||
	    !ident_parse(text, &id))
		return;
	struct promise *l = promises_find(&w->promises, id);
	if (l && l->state == PROMISE_STORED && !l->deleting && !l->finish)
		world_broken("it was stored, and is quarantined", l);
}

static void make_image(struct world *w)
{
	mailbox_drain(&w->client->mailbox); /* what was said by now was said */
	struct image *image = mem_alloc(sizeof *image);
	image->disk = memdisk_cut(w->disk, &w->power);
	image->promises = w->promises;
	image->promises.spoiled |= w->fails || memdisk_failed(w->disk);
	w->image[w->nimage++] = image;
}

static void before_call(void *owner, enum memdisk_call call)
{
	struct world *w = owner;
	edges_disk_call();
	if (w->on_call && !w->closed)
		w->on_call(w, call);
	/* So that commits wait for company. */
	if (!w->closed && call == CALL_DATASYNC && chance_percent(&w->power, SLOW_PERCENT))
		edges_took(1);
	if (w->closed || !w->cut_every || call == CALL_READ || call == CALL_SIZE ||
	    call == CALL_OPEN)
		return;
	if (w->nimage < WORLD_IMAGES && chance_below(&w->power, (uint32_t)w->cut_every) == 0)
		make_image(w);
}

void image_free(struct image **ip)
{
	memdisk_free(&(*ip)->disk);
	free(*ip);
	*ip = NULL;
}

void world_init(struct world *w, struct memdisk *disk, uint64_t seed)
{
	memset(w, 0, sizeof *w);
	w->disk = disk;
	w->chance.state = seed;
	w->power.state = seed + 1;
	memdisk_chance(disk, seed + 2);
	w->conf = conf_defaults();
	free(w->conf->spool);
	w->conf->spool = mem_strdup("/var/spool/sluice");
	/* Small ones have several lives. */
	w->conf->segment_size = chance_percent(&w->chance, 50) ? SEGMENT_BYTES : SMALL_BYTES;
	w->closed = true;
}

void world_fini(struct world *w)
{
	for (int i = 0; i < w->nimage; i++)
		image_free(&w->image[i]);
	conf_unref(w->conf);
	memdisk_free(&w->disk);
}

void world_post(struct world *w, struct note *note)
{
	loop_post(spool_loop(w->spool), note);
}

void world_ask(struct world *w, int op, uint64_t id)
{
	struct spool_command *c =
		spool_command_new(op, w->client, (void *)(uintptr_t)w->promises.seq++);
	c->id = id;
	c->limit = MUCH;
	w->unanswered++;
	world_post(w, &c->note);
}

bool world_open(struct world *w)
{
	struct buf error;
	buf_init(&error);
	edges_listen(hear_log, w);
	memdisk_use(w->disk, before_call, w);
	w->client = loop_new("client", hear, NULL, w);
	w->closed = w->listed = w->stopping = false;
	w->unanswered = 0;
	w->deleting_all = 0;
	w->shown = 0;
	w->spool = spool_new(w->conf, w->client, &error);
	if (!w->spool) {
		if (!w->fails)
			world_broken(buf_cstr(&error), NULL);
		w->closed = true;
		loop_free(&w->client);
	}
	buf_fini(&error);
	if (!w->spool)
		return false;
	loop_start(w->client);
	spool_start(w->spool);
	world_ask(w, SPOOL_LIST, 0);
	return true;
}

static void close_all(struct world *w)
{
	w->closed = true;
	spool_free(&w->spool);
	while (w->nheld > 0)
		world_drop_held(w, 0);
	loop_free(&w->client);
	if (memdisk_descriptors() != 0)
		world_broken("descriptors are left open", NULL);
}

void world_kill(struct world *w)
{
	mailbox_drain(&w->client->mailbox);
	memdisk_freeze(w->disk, true);
	loop_stop(spool_loop(w->spool));
	close_all(w);
	memdisk_freeze(w->disk, false);
}

void world_stop(struct world *w)
{
	uint32_t seq = w->promises.seq++;
	w->stopping = true;
	spool_stop(w->spool);
	mailbox_drain(&w->client->mailbox);
	if (!w->fails)
		promises_firm_all(&w->promises, seq);
	close_all(w);
}

void world_pass_long(struct world *w)
{
	uint32_t seq = w->promises.seq++;
	edges_pass(LAZY_MS);
	if (!w->fails)
		promises_firm_all(&w->promises, seq);
}

static void ends(struct world *w)
{
	for (int i = 0; i < w->promises.n; i++) {
		struct promise *l = &w->promises.promise[i];
		bool held = false;
		for (int k = 0; k < w->nheld; k++)
			held |= w->held[k].promise == l;
		if (!held && l->state == PROMISE_STORED && !l->finish && !l->finished &&
		    !l->deleting)
			world_broken("it was not handed to qmgr", l);
	}
}

/* Whatever has failed: the disk works again. */
void world_heal(struct world *w)
{
	for (int call = 0; call < CALL_KINDS; call++)
		memdisk_fail(w->disk, call, 0, 0, false);
	edges_pass(LAZY_MS);
	w->fails = false;
	if (!spool_accepting(w->spool))
		world_broken("mail is refused, and the disk works", NULL);
	world_store(w, true);
	world_pass_long(w);
}

void world_lose_checkpoint(struct world *w)
{
	memdisk_use(w->disk, NULL, NULL);
	w->promises.spoiled = true;
	int folder = disk_open(AT_FDCWD, "/var/spool/sluice/log", O_RDONLY | O_DIRECTORY);
	int fd = folder < 0 ? -1 : disk_open(folder, "checkpoint", O_RDWR);
	struct iovec v = {.iov_base = (char[]){'?'}, .iov_len = 1};
	if (fd >= 0 && chance_percent(&w->power, 50)) {
		if (disk_write(fd, &v, 1, chance_below(&w->power, 40)) != 0 ||
		    disk_datasync(fd) != 0)
			world_broken("a checkpoint can't be damaged", NULL);
	} else if (fd >= 0) {
		if (disk_unlink(folder, "checkpoint") != 0 || disk_sync(folder) != 0)
			world_broken("a checkpoint can't be removed", NULL);
	}
	if (fd >= 0)
		disk_close(fd);
	if (folder >= 0)
		disk_close(folder);
}

void world_audit(struct world *w, bool everything)
{
	edges_threads(INT32_MAX);
	edges_settle();
	if (!w->listed || w->unanswered)
		world_broken("the operator was not answered", NULL);
	if (!everything)
		return;
	for (int i = 0; i < w->promises.n; i++)
		world_ask(w, SPOOL_SHOW, w->promises.promise[i].id);
	world_ask(w, SPOOL_RESUME, 0);
	world_credit(w, MUCH);
	edges_pass(FAR_MS);
	if (w->unanswered)
		world_broken("the operator was not answered", NULL);
	ends(w);
}

struct world *world_begin(uint64_t seed)
{
	struct world *w = mem_alloc(sizeof *w);
	world_seed = seed;
	edges_begin();
	edges_stepped(false);
	world_init(w, memdisk_new(), seed);
	return w;
}

void world_done(struct world **wp)
{
	world_fini(*wp);
	free(*wp);
	*wp = NULL;
}

void world_again(struct world *w, bool after_cut)
{
	promises_started(&w->promises, after_cut);
	world_open(w);
	edges_settle();
}

void world_look(struct world *w, struct memdisk *disk, const struct promises *promises,
		bool without_checkpoint)
{
	w->disk = disk;
	w->promises = *promises;
	if (without_checkpoint)
		world_lose_checkpoint(w);
	world_again(w, true);
	world_audit(w, true);
	world_kill(w);
	memdisk_free(&w->disk);
}

void world_cut(struct world *w, int cuts, bool without_checkpoint)
{
	struct promises promises = w->promises;
	struct memdisk *disk = w->disk;
	world_kill(w);
	for (int i = 0; i < cuts; i++)
		world_look(w, memdisk_cut(disk, &w->power), &promises, without_checkpoint);
	w->disk = disk;
}

void world_store_some(struct world *w, int n)
{
	for (int i = 0; i < n; i++)
		world_store(w, true);
}
