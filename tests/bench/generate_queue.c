/* SPDX-License-Identifier: ISC */
/* generate_queue - fill a queue with deferred messages, fast, through the real spool.
 *
 * It plays smtpd and qmgr: stores messages, takes each arrival, and releases it with an envelope that
 * says "tried once, later again". What is left on the disk is what a relay leaves whose next hops
 * have answered 451 for an hour; every message was synced before the next ones were stored.
 *
 *	generate_queue SPOOL MESSAGES BYTES DELAY SPREAD SEGMENT
 *
 * SPOOL is the folder of the queue, BYTES the size of a content. The messages are due DELAY seconds
 * from now and later, evenly over SPREAD seconds. SEGMENT is segment_size in bytes. */
#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "spool/spool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 2000, DOMAINS = 1000, LINE = 72 }; /* messages under way; domains; bytes */

struct generator {
	struct conf *conf;
	struct loop *loop;
	struct spool *spool;
	int64_t messages, bytes, delay_ms, spread_ms;
	int64_t asked, stored, released, refused;
};

static void post(struct generator *g, struct note *note)
{
	loop_post(spool_loop(g->spool), note);
}

static char *make_content(const struct generator *g, uint64_t id)
{
	char text[IDENT_TEXT];
	char *head = mem_printf("Received: from client.test by relay.test id %s\r\n"
				"From: <sender@sender.test>\r\nSubject: generated\r\n\r\n",
				ident_text(id, text));
	size_t len = strlen(head), size = (size_t)g->bytes;
	char *bytes = mem_alloc(size);
	memset(bytes, 'x', size);
	memcpy(bytes, head, len < size ? len : size);
	for (size_t at = len + LINE; at + 2 < size; at += LINE + 2)
		memcpy(bytes + at, "\r\n", 2);
	memcpy(bytes + size - 2, "\r\n", 2);
	free(head);
	return bytes;
}

static void store_one(struct generator *g)
{
	struct spool_store *s = mem_zalloc(sizeof *s);
	struct envelope *e = envelope_new();
	char *address =
		mem_printf("user%" PRId64 "@dest%d.test", g->asked, (int)(g->asked % DOMAINS));
	e->id = ident_new();
	e->arrived_ms = clock_wall_ms();
	e->sender = mem_strdup("sender@sender.test");
	e->size = (uint64_t)g->bytes;
	envelope_add(e, address);
	free(address);
	s->note.type = SPOOL_STORE;
	s->reply_to = g->loop;
	s->envelope = e;
	s->content = content_in_memory(make_content(g, e->id), e->size);
	s->id = e->id;
	g->asked++;
	post(g, &s->note);
}

static void store_more(struct generator *g)
{
	while (g->asked < g->messages && g->asked - g->released < WINDOW)
		store_one(g);
}

static void defer(struct generator *g, struct spool_arrival *a)
{
	struct spool_release *r = mem_zalloc(sizeof *r);
	struct envelope *e = a->envelope;
	int64_t later = g->spread_ms * (g->released % DOMAINS) / DOMAINS;
	e->rcpt[0].tries = 1;
	e->rcpt[0].last = verdict_new(VERDICT_DEFERRED, 451, "4.3.0", "mx.dest.test[192.0.2.1]:25",
				      "4.3.0 Temporary failure, please try again later");
	e->rounds = 1;
	e->due_ms = clock_wall_ms() + g->delay_ms + later;
	r->note.type = SPOOL_RELEASE;
	r->id = e->id;
	r->envelope = e;
	content_unref(a->content);
	free(a);
	g->released++;
	post(g, &r->note);
}

static void receive(void *owner, struct note *note)
{
	struct generator *g = owner;
	if (note->type == SPOOL_ARRIVAL) {
		defer(g, (struct spool_arrival *)note);
	} else if (note->type == SPOOL_STORED) {
		struct spool_store *s = (struct spool_store *)note;
		g->stored += s->stored;
		g->refused += !s->stored;
		free(s);
	} else {
		free(note);
	}
}

static void received_all(void *owner)
{
	struct generator *g = owner;
	if (g->refused > 0) {
		fprintf(stderr, "generate_queue: a message was refused; is the disk full?\n");
		exit(1);
	}
	store_more(g);
	if (g->stored == g->messages && g->released == g->messages)
		ev_break(g->loop->ev, EVBREAK_ALL);
}

static void give_credit(struct generator *g)
{
	struct spool_credit *c = mem_zalloc(sizeof *c);
	c->note.type = SPOOL_CREDIT;
	c->n = 2 * WINDOW;
	post(g, &c->note);
}

static bool fill(struct generator *g)
{
	struct buf error;
	buf_init(&error);
	g->loop = loop_new("generate", receive, received_all, g);
	g->spool = spool_new(g->conf, g->loop, &error);
	if (!g->spool) {
		fprintf(stderr, "generate_queue: %s\n", buf_cstr(&error));
		buf_fini(&error);
		return false;
	}
	buf_fini(&error);
	spool_start(g->spool);
	give_credit(g);
	store_more(g);
	ev_run(g->loop->ev, 0);
	spool_stop(g->spool);
	spool_free(&g->spool);
	loop_free(&g->loop);
	return true;
}

int main(int argc, char **argv)
{
	if (argc != 7) {
		fprintf(stderr,
			"usage: generate_queue SPOOL MESSAGES BYTES DELAY SPREAD SEGMENT\n");
		return 2;
	}
	struct generator g = {.conf = conf_defaults()};
	int64_t began_ms = clock_steady_ms();
	free(g.conf->spool);
	g.conf->spool = mem_strdup(argv[1]);
	g.messages = strtoll(argv[2], NULL, 10);
	g.bytes = strtoll(argv[3], NULL, 10);
	g.delay_ms = strtoll(argv[4], NULL, 10) * 1000;
	g.spread_ms = strtoll(argv[5], NULL, 10) * 1000;
	g.conf->segment_size = strtoll(argv[6], NULL, 10);
	if (g.messages < 1 || g.bytes < 2 || g.bytes > SPOOL_CONTENT_INLINE_MAX) {
		fprintf(stderr, "generate_queue: 1 message or more, of 2 bytes to 512 KiB\n");
		return 2;
	}
	bool ok = fill(&g);
	if (ok)
		printf("%" PRId64 " messages in %.3f seconds\n", g.stored,
		       (double)(clock_steady_ms() - began_ms) / 1000);
	conf_unref(g.conf);
	return ok ? 0 : 1;
}
