/* SPDX-License-Identifier: ISC */
#include "smtpc/worker.h"

#include "base/mem.h"
#include "base/tls.h"
#include "smtpc/connection_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static struct connection *find(const struct worker *w, uint64_t number)
{
	struct connection *c;
	HASH_FIND(hh, w->connections, &number, sizeof number, c);
	return c;
}

void worker_add(struct worker *w, struct connection *c)
{
	assert(!find(w, c->number));
	HASH_ADD(hh, w->connections, number, sizeof c->number, c);
}

void worker_remove(struct worker *w, struct connection *c)
{
	HASH_DEL(w->connections, c);
}

static void give(struct worker *w, struct delivery *d)
{
	struct connection *c = find(w, d->connection);
	if (c) {
		connection_give(c, d);
		return;
	}
	d->returned = true;
	d->note.type = DELIVERY_BACK;
	loop_post(d->reply_to, &d->note);
}

static void close_one(struct worker *w, struct connection_close *note)
{
	struct connection *c = find(w, note->connection);
	if (c)
		connection_close(c);
	free(note);
}

/* Who posted it may be gone as well. */
static void discard(struct note *n)
{
	if (n->type == CONNECTION_OPEN) {
		struct connection_open *open = (struct connection_open *)n;
		connection_open_free(&open);
	} else if (n->type == DELIVERY_GIVE) {
		struct delivery *d = (struct delivery *)n;
		delivery_free(&d);
	} else {
		free(n);
	}
}

static void receive(void *owner, struct note *n)
{
	struct worker *w = owner;
	if (w->stopped)
		discard(n);
	else if (n->type == CONNECTION_OPEN)
		connection_start(w, (struct connection_open *)n);
	else if (n->type == DELIVERY_GIVE)
		give(w, (struct delivery *)n);
	else
		close_one(w, (struct connection_close *)n);
}

struct worker *worker_new(int number)
{
	struct worker *w = mem_zalloc(sizeof *w);
	snprintf(w->name, sizeof w->name, "smtpc-%d", number);
	w->loop = loop_new(w->name, receive, NULL, w);
	w->tls = tls_client_context();
	SSL_CTX_sess_set_new_cb(w->tls, connection_new_session);
	sessions_init(&w->sessions);
	return w;
}

void worker_start(struct worker *w)
{
	loop_start(w->loop);
}

void worker_stop(struct worker *w)
{
	loop_stop(w->loop);
	w->stopped = true;
	while (w->connections)
		connection_drop(w->connections);
}

void worker_free(struct worker **wp)
{
	struct worker *w = *wp;
	if (!w)
		return;
	worker_stop(w);
	assert(!w->connections);
	loop_free(&w->loop);
	sessions_fini(&w->sessions);
	SSL_CTX_free(w->tls);
	free(w);
	*wp = NULL;
}
