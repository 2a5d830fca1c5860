/* SPDX-License-Identifier: ISC */
/* /api/shape: the maildrop first, if it is wanted; then the queue, part by part. */
#include "base/mem.h"
#include "cmd/http/http_look.h"
#include "cmd/maildrop/maildrop.h"
#include "cmd/text/shape_args.h"
#include "cmd/text/shape_print.h"
#include "spool/shape.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 20000 }; /* messages */

struct shape_question {
	struct shape *shape;
	uint64_t after; /* the last message that was counted */
	bool maildrop;
	int64_t rows;
};

static void free_question(void *own)
{
	struct shape_question *q = own;
	shape_free(&q->shape);
	free(q);
}

static void print_shape(struct http_look *k, const struct shape_question *q)
{
	struct shape_view view;
	shape_rank(q->shape);
	shape_view_init(&view, q->shape, SHAPE_MINUTES, 0, false);
	shape_print_json(&k->out, &view, &q->shape->all);
	for (size_t i = 0; i < q->shape->n && (int64_t)i < q->rows; i++)
		shape_print_json(&k->out, &view, &q->shape->row[i]);
	k->type = "application/x-ndjson";
	http_look_done(k, MHD_HTTP_OK);
}

static void take_part(struct asker *asker, struct note *note);

static void ask_part(struct http_look *k, struct shape_question *q)
{
	struct spool_command *c = spool_command_new(SPOOL_SHAPE, k->http->loop, k);
	assert(q->shape);
	c->shape = q->shape;
	q->shape = NULL;
	c->after = q->after;
	c->limit = PART;
	c->unranked = true;
	http_look_post(k, spool_loop(k->http->spool), &c->note, take_part);
}

static void take_part(struct asker *asker, struct note *note)
{
	struct http_look *k = (struct http_look *)asker;
	struct spool_command *c = (struct spool_command *)note;
	if (http_look_back(k)) {
		struct shape_question *q = k->own;
		assert(!q->shape);
		q->shape = c->shape;
		c->shape = NULL;
		q->after = c->after;
		if (c->more)
			ask_part(k, q);
		else
			print_shape(k, q);
	}
	spool_command_free(&c);
}

static void take_maildrop(struct asker *asker, struct note *note)
{
	struct http_look *k = (struct http_look *)asker;
	struct maildrop_shape *m = (struct maildrop_shape *)note;
	if (http_look_back(k)) {
		struct shape_question *q = k->own;
		assert(!q->shape);
		q->shape = m->shape;
		m->shape = NULL;
		if (m->error)
			http_look_fail(k, MHD_HTTP_SERVICE_UNAVAILABLE,
				       "the maildrop cannot be read");
		else
			ask_part(k, q);
	}
	shape_free(&m->shape);
	free(m);
}

static void begin_look(struct http_look *k)
{
	struct shape_question *q = k->own;
	struct shape *shape = q->shape;
	if (!q->maildrop || !k->http->maildrop) {
		ask_part(k, q);
		return;
	}
	q->shape = NULL;
	http_look_expect(k, take_maildrop);
	maildrop_ask_shape(k->http->maildrop, shape, k->http->loop, k);
}

/* "deferred", or several with commas between. False: one is none. */
static bool read_queues(const char *text, struct shape_question *q)
{
	q->shape->queues = 0;
	for (size_t len; *text; text += len + (text[len] == ',')) {
		len = strcspn(text, ",");
		unsigned queue = spool_queue_bit(text, len);
		bool maildrop = len == strlen("maildrop") && strncmp(text, "maildrop", len) == 0;
		q->shape->queues |= queue;
		q->maildrop |= maildrop;
		if (!queue && !maildrop)
			return false;
	}
	return true;
}

void http_ask_shape(struct http_ask *a)
{
	static const struct look_kind kind = {begin_look, free_question};
	const char *queues = http_ask_value(a, "queue"), *by = http_ask_value(a, "by");
	int64_t rows;
	if (!http_ask_limit(a, &rows))
		return;
	struct shape_question *q = mem_zalloc(sizeof *q);
	q->shape = shape_new();
	q->rows = rows;
	q->shape->senders = strcmp(by, "sender") == 0;
	if ((*queues && !read_queues(queues, q)) ||
	    (*by && !q->shape->senders && strcmp(by, "recipient") != 0)) {
		free_question(q);
		http_ask_refuse(a, MHD_HTTP_BAD_REQUEST,
				"queue: of maildrop, incoming, active, deferred, hold; by: "
				"recipient or sender");
		return;
	}
	char *key = mem_printf("shape %x %d %d %lld", q->shape->queues, q->maildrop,
			       q->shape->senders, (long long)rows);
	http_look_want(a, key, &kind, q);
	free(key);
}
