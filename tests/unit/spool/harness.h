/* harness.h - a queue in a folder of its own, and a client that is both smtpd and qmgr.
 *
 * The spool runs its real thread; the client runs its loop only inside harness_wait(), so that a
 * test reads from top to bottom.
 *
 * OWNERSHIP  harness_fini() removes the folder.
 * THREAD     The test's.
 * ERRORS     What takes longer than WAIT_MS fails the test.
 */
#ifndef TESTS_UNIT_SPOOL_HARNESS_H
#define TESTS_UNIT_SPOOL_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "spool/spool.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WAIT_MS = 60000 };

struct harness {
	char folder[200];
	struct conf *conf;
	struct loop *loop;
	struct spool *spool;
	int nstored, nrefused, narrival, ncancel, ncommand;
	struct spool_arrival *arrival[20000]; /* taken with harness_take() */
	int taken, nflushed, nmoved;
	struct content *moved;
	uint64_t stored[20000];
	uint64_t cancelled;
	struct spool_command *command;
};

static inline void harness_receive(void *owner, struct note *note)
{
	struct harness *h = owner;
	if (note->type == SPOOL_STORED) {
		struct spool_store *s = (struct spool_store *)note;
		if (s->stored)
			h->stored[h->nstored++] = s->id;
		else
			h->nrefused++;
		assert_null(s->envelope);
		assert_null(s->content);
		assert_null(s->file);
		free(s);
	} else if (note->type == SPOOL_ARRIVAL) {
		h->arrival[h->narrival++] = (struct spool_arrival *)note;
	} else if (note->type == SPOOL_CANCEL) {
		h->cancelled = ((struct spool_cancel *)note)->id;
		h->ncancel++;
		free(note);
	} else if (note->type == SPOOL_MOVED) {
		struct spool_moved *m = (struct spool_moved *)note;
		content_unref(h->moved);
		h->moved = m->content;
		h->nmoved++;
		free(m);
	} else if (note->type == SPOOL_FLUSHED) {
		h->nflushed++;
		free(note);
	} else {
		assert_int_equal(note->type, SPOOL_COMMAND);
		h->command = (struct spool_command *)note;
		h->ncommand++;
	}
}

static inline void harness_shell(const char *fmt, const char *a, const char *b)
{
	char *line = mem_printf(fmt, a, b);
	assert_int_equal(system(line), 0);
	free(line);
}

static inline void harness_init(struct harness *h)
{
	memset(h, 0, sizeof *h);
	const char *tmp = getenv("TMPDIR");
	snprintf(h->folder, sizeof h->folder, "%s/sluice-spool.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(h->folder));
	h->conf = conf_defaults();
	free(h->conf->spool);
	h->conf->spool = mem_printf("%s/queue", h->folder);
	h->conf->segment_size = 256 << 10;
	h->loop = loop_new("client", harness_receive, NULL, h);
}

static inline void harness_open(struct harness *h)
{
	struct buf error;
	buf_init(&error);
	h->spool = spool_new(h->conf, h->loop, &error);
	if (!h->spool)
		fail_msg("%s", buf_cstr(&error));
	buf_fini(&error);
	spool_start(h->spool);
}

static inline void harness_free_arrivals(struct harness *h)
{
	for (; h->taken < h->narrival; h->taken++) {
		envelope_free(&h->arrival[h->taken]->envelope);
		content_unref(h->arrival[h->taken]->content);
		free(h->arrival[h->taken]);
	}
	h->taken = h->narrival = h->nstored = h->nrefused = h->ncancel = h->ncommand = 0;
}

static inline void harness_close(struct harness *h)
{
	spool_stop(h->spool);
	spool_free(&h->spool);
	ev_run(h->loop->ev, EVRUN_NOWAIT);
	harness_free_arrivals(h);
}

static inline void harness_fini(struct harness *h)
{
	if (h->spool)
		harness_close(h);
	loop_free(&h->loop);
	conf_unref(h->conf);
	harness_shell("rm -rf '%s'", h->folder, "");
}

/* What a crash at this moment leaves, as far as the kernel lives: the queue is copied as it is, the
 * old one closed, the copy takes its place. */
static inline void harness_crash(struct harness *h)
{
	char *copy = mem_printf("%s/copy", h->folder);
	harness_shell("cp -a --sparse=always '%s' '%s'", h->conf->spool, copy);
	harness_close(h);
	harness_shell("rm -rf '%s'", h->conf->spool, "");
	harness_shell("mv '%s' '%s'", copy, h->conf->spool);
	free(copy);
}

static inline void harness_wait(struct harness *h, const int *count, int n)
{
	int64_t end_ms = clock_steady_ms() + WAIT_MS;
	struct timer nap;
	timer_init(&nap, (void (*)(void *))abort, NULL);
	while (*count < n) {
		if (clock_steady_ms() > end_ms)
			fail_msg("waited in vain: %d of %d", *count, n);
		timer_start(&h->loop->timers, &nap, end_ms + 1000);
		ev_run(h->loop->ev, EVRUN_ONCE);
	}
	timer_stop(&h->loop->timers, &nap);
}

static inline struct envelope *harness_envelope(int nrcpt)
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

static inline struct spool_store *harness_new_store(struct harness *h, int nrcpt, size_t size)
{
	struct spool_store *s = mem_zalloc(sizeof *s);
	s->note.type = SPOOL_STORE;
	s->reply_to = h->loop;
	s->envelope = harness_envelope(nrcpt);
	s->envelope->size = size;
	char *bytes = mem_alloc(size);
	memset(bytes, 'a' + (int)(size % 26), size);
	s->content = content_in_memory(bytes, size);
	s->id = s->envelope->id;
	return s;
}

static inline uint64_t harness_store(struct harness *h, int nrcpt, size_t size)
{
	struct spool_store *s = harness_new_store(h, nrcpt, size);
	uint64_t id = s->id;
	loop_post(spool_loop(h->spool), &s->note);
	return id;
}

static inline void harness_credit(struct harness *h, int64_t n)
{
	struct spool_credit *c = mem_zalloc(sizeof *c);
	c->note.type = SPOOL_CREDIT;
	c->n = n;
	loop_post(spool_loop(h->spool), &c->note);
}

static inline void harness_delivered(struct harness *h, uint64_t id, uint32_t rcpt,
				     enum verdict_class class)
{
	struct spool_delivered *d = mem_zalloc(sizeof *d + sizeof d->of[0]);
	d->note.type = SPOOL_DELIVERED;
	d->id = id;
	d->n = 1;
	d->of[0].recipient = rcpt;
	d->of[0].verdict =
		verdict_new(class, class == VERDICT_SENT ? 250 : 450, NULL, "mx", "said");
	loop_post(spool_loop(h->spool), &d->note);
}

static inline void harness_release(struct harness *h, uint64_t id, struct envelope *e)
{
	struct spool_release *r = mem_zalloc(sizeof *r);
	r->note.type = SPOOL_RELEASE;
	r->id = id;
	r->envelope = e;
	loop_post(spool_loop(h->spool), &r->note);
}

/* The next arrival's envelope; its content is looked at and let go. */
static inline struct envelope *harness_take(struct harness *h)
{
	harness_wait(h, &h->narrival, h->taken + 1);
	struct spool_arrival *a = h->arrival[h->taken++];
	struct envelope *e = a->envelope;
	assert_int_equal(a->content->size, e->size);
	char *bytes = mem_alloc(e->size + 1);
	assert_int_equal(content_read(a->content, 0, bytes, e->size + 1), e->size);
	for (size_t i = 0; i < e->size; i++)
		if (bytes[i] != 'a' + (int)(e->size % 26))
			fail_msg("content differs at %zu", i);
	free(bytes);
	content_unref(a->content);
	free(a);
	return e;
}

/* Ask, and wait for the answer; the caller frees it. */
static inline struct spool_command *harness_ask(struct harness *h, int op, uint64_t id,
						uint64_t after, int limit)
{
	struct spool_command *c = spool_command_new(op, h->loop, NULL);
	c->id = id;
	c->after = after;
	c->limit = limit;
	int n = h->ncommand + 1;
	loop_post(spool_loop(h->spool), &c->note);
	harness_wait(h, &h->ncommand, n);
	assert_ptr_equal(h->command, c);
	return c;
}

static inline int harness_count(struct harness *h)
{
	struct spool_command *c = harness_ask(h, SPOOL_LIST, 0, 0, 1 << 30);
	int n = c->nrow;
	spool_command_free(&c);
	return n;
}

/* The queue lists this many, now or soon. */
static inline void harness_recovered(struct harness *h, int n)
{
	int64_t end_ms = clock_steady_ms() + 5000;
	int have;
	while ((have = harness_count(h)) != n && clock_steady_ms() < end_ms)
		usleep(1000);
	assert_int_equal(have, n);
}

static inline int harness_files(const struct harness *h, const char *folder)
{
	char *path = mem_printf("%s/%s", h->conf->spool, folder);
	DIR *d = opendir(path);
	int n = 0;
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));)
		n += e->d_name[0] != '.';
	closedir(d);
	free(path);
	return n;
}

#endif
