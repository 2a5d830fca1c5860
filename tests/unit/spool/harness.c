/* SPDX-License-Identifier: ISC */
#include "harness.h"

#include "spool/adoption.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

struct harness h;

int harness_setup(void **state)
{
	(void)state;
	harness_init(&h);
	harness_open(&h);
	return 0;
}

int harness_teardown(void **state)
{
	(void)state;
	harness_fini(&h);
	return 0;
}

void harness_receive(void *owner, struct note *note)
{
	struct harness *t = owner;
	if (note->type == SPOOL_STORED) {
		struct spool_store *s = (struct spool_store *)note;
		if (s->stored)
			t->stored[t->nstored++] = s->id;
		else
			t->nrefused++;
		assert_null(s->envelope);
		assert_null(s->content);
		assert_null(s->file);
		free(s);
	} else if (note->type == SPOOL_ARRIVAL) {
		t->arrival[t->narrival++] = (struct spool_arrival *)note;
	} else if (note->type == SPOOL_CANCEL) {
		t->cancelled = ((struct spool_cancel *)note)->id;
		t->ncancel++;
		free(note);
	} else if (note->type == SPOOL_MOVED) {
		struct spool_moved *m = (struct spool_moved *)note;
		content_unref(t->moved);
		t->moved = m->content;
		t->nmoved++;
		free(m);
	} else if (note->type == SPOOL_UNPARK) {
		t->unpark = *(struct spool_unpark *)note;
		t->nunpark++;
		free(note);
	} else if (note->type == SPOOL_DISOWN) {
		t->ndisowned++;
		t->disowned = ((struct spool_disown *)note)->done;
		free(note);
	} else {
		assert_int_equal(note->type, SPOOL_COMMAND);
		t->command = (struct spool_command *)note;
		t->ncommand++;
	}
}

void harness_shell(const char *fmt, const char *a, const char *b)
{
	char *line = mem_printf(fmt, a, b);
	assert_int_equal(system(line), 0);
	free(line);
}

void harness_init(struct harness *t)
{
	memset(t, 0, sizeof *t);
	const char *tmp = getenv("TMPDIR");
	snprintf(t->folder, sizeof t->folder, "%s/sluice-spool.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(t->folder));
	t->conf = conf_defaults();
	free(t->conf->spool);
	t->conf->spool = mem_printf("%s/queue", t->folder);
	t->conf->segment_size = 256 << 10;
	t->conf->flow[0].share = 100; /* one flow, and every place is wanted */
	t->loop = loop_new("client", harness_receive, NULL, t);
}

void harness_open(struct harness *t)
{
	struct buf error;
	buf_init(&error);
	t->spool = spool_new(t->conf, t->loop, &error);
	if (!t->spool)
		fail_msg("%s", buf_cstr(&error));
	buf_fini(&error);
	spool_start(t->spool);
}

static void harness_free_arrivals(struct harness *t)
{
	for (; t->taken < t->narrival; t->taken++) {
		envelope_free(&t->arrival[t->taken]->envelope);
		content_unref(t->arrival[t->taken]->content);
		free(t->arrival[t->taken]);
	}
	t->taken = t->narrival = t->nstored = t->nrefused = t->ncancel = t->ncommand = t->nunpark =
		0;
}

void harness_close(struct harness *t)
{
	spool_stop(t->spool);
	spool_free(&t->spool);
	ev_run(t->loop->ev, EVRUN_NOWAIT);
	harness_free_arrivals(t);
}

void harness_fini(struct harness *t)
{
	if (t->spool)
		harness_close(t);
	content_unref(t->moved);
	t->moved = NULL;
	loop_free(&t->loop);
	conf_unref(t->conf);
	harness_shell("rm -rf '%s'", t->folder, "");
}

/* False: something was renamed or removed meanwhile. */
static bool copied(const char *from, const char *to)
{
	char *line = mem_printf("cp -a --sparse=always '%s' '%s' 2>/dev/null", from, to);
	bool ok = system(line) == 0;
	free(line);
	return ok;
}

void harness_crash(struct harness *t)
{
	char *copy = mem_printf("%s/copy", t->folder);
	do
		harness_shell("rm -rf '%s'", copy, "");
	while (!copied(t->conf->spool, copy));
	harness_close(t);
	harness_shell("rm -rf '%s'", t->conf->spool, "");
	harness_shell("mv '%s' '%s'", copy, t->conf->spool);
	free(copy);
}

void harness_wait(struct harness *t, const int *count, int n)
{
	int64_t end_ms = clock_steady_ms() + WAIT_MS;
	struct timer nap;
	timer_init(&nap, (void (*)(void *))abort, NULL);
	while (*count < n) {
		if (clock_steady_ms() > end_ms)
			fail_msg("waited in vain: %d of %d", *count, n);
		timer_start(&t->loop->timers, &nap, end_ms + 1000);
		ev_run(t->loop->ev, EVRUN_ONCE);
	}
	timer_stop(&t->loop->timers, &nap);
}

struct envelope *harness_envelope(int nrcpt)
{
	struct envelope *e = envelope_new();
	e->id = ident_new();
	e->arrived_ms = clock_wall_ms();
	e->sender = mem_strdup("sender@example.org");
	for (int i = 0; i < nrcpt; i++) {
		char *address = mem_printf("recipient%d@example.com", i);
		envelope_add(e, address);
		free(address);
	}
	return e;
}

struct spool_store *harness_new_store(struct harness *t, int nrcpt, size_t size)
{
	struct spool_store *s = mem_zalloc(sizeof *s);
	s->note.type = SPOOL_STORE;
	s->reply_to = t->loop;
	s->envelope = harness_envelope(nrcpt);
	s->envelope->size = size;
	char *bytes = mem_alloc(size);
	memset(bytes, 'a' + (int)(size % 26), size);
	s->content = content_in_memory(bytes, size);
	s->id = s->envelope->id;
	return s;
}

uint64_t harness_store(struct harness *t, int nrcpt, size_t size)
{
	struct spool_store *s = harness_new_store(t, nrcpt, size);
	uint64_t id = s->id;
	spool_post(t->spool, &s->note);
	return id;
}

void harness_credit(struct harness *t, int64_t n)
{
	struct spool_credit *c = mem_zalloc(sizeof *c);
	c->note.type = SPOOL_CREDIT;
	c->n = n;
	spool_post(t->spool, &c->note);
}

void harness_delivered(struct harness *t, uint64_t id, uint32_t rcpt, enum verdict_class class)
{
	struct spool_delivered *d = mem_zalloc(sizeof *d + sizeof d->of[0]);
	d->note.type = SPOOL_DELIVERED;
	d->id = id;
	d->n = 1;
	d->of[0].recipient = rcpt;
	d->of[0].verdict =
		verdict_new(class, class == VERDICT_SENT ? 250 : 450, NULL, "mx", "said");
	spool_post(t->spool, &d->note);
}

void harness_release(struct harness *t, uint64_t id, struct envelope *e)
{
	struct spool_release *r = mem_zalloc(sizeof *r);
	r->note.type = SPOOL_RELEASE;
	r->id = id;
	r->envelope = e;
	spool_post(t->spool, &r->note);
}

void harness_park(struct harness *t, struct envelope *e, uint16_t site)
{
	struct spool_release *r = mem_zalloc(sizeof *r);
	r->note.type = SPOOL_RELEASE;
	r->id = e->id;
	r->envelope = e;
	r->site = site;
	r->parked = true;
	spool_post(t->spool, &r->note);
}

struct spool_unpark harness_unpark(struct harness *t, uint16_t site, uint32_t most)
{
	struct spool_unpark *u = mem_zalloc(sizeof *u);
	u->note.type = SPOOL_UNPARK;
	u->site = site;
	u->most = most;
	int n = t->nunpark + 1;
	spool_post(t->spool, &u->note);
	harness_wait(t, &t->nunpark, n);
	assert_int_equal(t->unpark.site, site);
	return t->unpark;
}

struct envelope *harness_take(struct harness *t)
{
	harness_wait(t, &t->narrival, t->taken + 1);
	struct spool_arrival *a = t->arrival[t->taken++];
	struct envelope *e = a->envelope;
	assert_int_equal(a->content->size, e->size);
	char *bytes = mem_alloc(e->size + 1);
	assert_int_equal(content_read(a->content, 0, bytes, e->size + 1), e->size);
	for (size_t i = 0; i < e->size; i++)
		if (bytes[i] != 'a' + (int)(e->size % 26))
			fail_msg("content differs at %zu", i);
	free(bytes);
	content_unref(a->content);
	t->urgent = a->urgent;
	free(a);
	return e;
}

void harness_command(struct harness *t, struct spool_command *c)
{
	int n = t->ncommand + 1;
	spool_post(t->spool, &c->note);
	harness_wait(t, &t->ncommand, n);
	assert_ptr_equal(t->command, c);
}

struct spool_command *harness_ask(struct harness *t, int op, uint64_t id, uint64_t after, int limit)
{
	struct spool_command *c = spool_command_new(op, t->loop, NULL);
	c->id = id;
	c->after = after;
	c->limit = limit;
	harness_command(t, c);
	return c;
}

int harness_count(struct harness *t)
{
	struct spool_command *c = harness_ask(t, SPOOL_LIST, 0, 0, 1 << 30);
	int n = c->nrow;
	spool_command_free(&c);
	return n;
}

struct spool_store *harness_new_large(struct harness *t, uint64_t id)
{
	enum { SIZE = 1000 };
	char bytes[SIZE];
	struct spool_store *s = mem_zalloc(sizeof *s);
	memset(bytes, 'a' + SIZE % 26, SIZE);
	s->note.type = SPOOL_STORE;
	s->reply_to = t->loop;
	s->adopted = true;
	s->envelope = harness_envelope(1);
	s->envelope->size = SIZE;
	s->envelope->id = s->id = id;
	s->file = spool_file_new(t->spool, id);
	assert_non_null(s->file);
	assert_int_equal(spool_file_write(s->file, bytes, SIZE), 0);
	return s;
}

void harness_recovered(struct harness *t, int n)
{
	int64_t end_ms = clock_steady_ms() + WAIT_MS;
	int have;
	while ((have = harness_count(t)) != n && clock_steady_ms() < end_ms)
		usleep(1000);
	assert_int_equal(have, n);
}

void harness_pass(struct harness *t, int n)
{
	for (int i = 0; i < n; i++) {
		harness_store(t, 1, 5000);
		struct envelope *e = harness_take(t);
		harness_delivered(t, e->id, 0, VERDICT_SENT);
		harness_release(t, e->id, NULL);
		envelope_free(&e);
	}
	harness_recovered(t, 0);
}

static void come_and_go(struct harness *t, int n)
{
	for (int i = 0; i < n; i++) {
		harness_store(t, 1, 5000);
		struct envelope *e = harness_take(t);
		harness_release(t, e->id, NULL);
		envelope_free(&e);
	}
}

uint64_t harness_lose_proofs(struct harness *t)
{
	struct envelope *e[3];
	harness_credit(t, 100);
	/* So much of that segment is needed that compaction lets it be. */
	for (int i = 0; i < 3; i++)
		harness_store(t, 1, i == 0 ? 200000 : 1000);
	for (int i = 0; i < 3; i++)
		e[i] = harness_take(t);
	uint64_t waits = e[0]->id;
	e[0]->due_ms = clock_wall_ms() + 3600000;
	for (int i = 0; i < 3; i++) {
		e[i]->rounds = 1;
		harness_release(t, e[i]->id, e[i]);
	}
	for (int i = 1; i < 3; i++) {
		struct envelope *again = harness_take(t);
		come_and_go(t, i == 1 ? 0 : 120);
		harness_release(t, again->id, NULL);
		envelope_free(&again);
	}
	come_and_go(t, 120);
	assert_in_range(harness_fewest_segments(t, 4), 2, 4);
	harness_recovered(t, 1);
	return waits;
}

static int count(const struct harness *t, const char *folder, const char *with)
{
	char *path = mem_printf("%s/%s", t->conf->spool, folder);
	DIR *d = opendir(path);
	int n = 0;
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.' && strstr(e->d_name, with);
	closedir(d);
	free(path);
	return n;
}

int harness_files(const struct harness *t, const char *folder)
{
	return count(t, folder, "");
}

int harness_segments(const struct harness *t)
{
	return count(t, "log", ".seg");
}

int harness_fewest_segments(const struct harness *t, int most)
{
	int n = harness_segments(t);
	for (int i = 0; i < WAIT_MS / 10 && n > most; i++) {
		usleep(10000);
		n = harness_segments(t);
	}
	return n;
}
