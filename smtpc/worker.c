/* SPDX-License-Identifier: ISC */
#include "smtpc/worker.h"

#include "base/descriptors.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/tls.h"
#include "smtpc/connection_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static struct connection *find_connection(const struct worker *w, uint64_t number)
{
	struct connection *c;
	HASH_FIND(hh, w->connections, &number, sizeof number, c);
	return c;
}

void worker_add(struct worker *w, struct connection *c)
{
	assert(loop_is_ours(w->loop));
	assert(!find_connection(w, c->number));
	HASH_ADD(hh, w->connections, number, sizeof c->number, c);
}

void worker_remove(struct worker *w, struct connection *c)
{
	assert(loop_is_ours(w->loop));
	HASH_DEL(w->connections, c);
}

static void give_delivery(struct worker *w, struct delivery *d)
{
	struct connection *c = find_connection(w, d->connection);
	if (c) {
		connection_give(c, d);
		return;
	}
	d->returned = true;
	d->note.type = DELIVERY_BACK;
	loop_post_awaited(d->reply_to, &d->note);
}

static void have_secret(struct worker *w, struct secret_ask *a)
{
	struct connection *c = find_connection(w, a->connection);
	if (c)
		connection_have_secret(c, a);
	else
		secret_ask_free(&a);
}

/* Of one that has never begun. */
static void say_closed(struct connection_open *open)
{
	assert(!open->was_ready && !open->why);
	open->note.type = CONNECTION_CLOSED;
	loop_post(open->reply_to, &open->note);
}

static struct connection_open *first_waiting(struct worker *w)
{
	return (struct connection_open *)note_queue_take(&w->waiting);
}

static void close_waiting(struct worker *w, uint64_t number)
{
	struct note **link = &w->waiting.first;
	while (*link && ((struct connection_open *)*link)->connection != number)
		link = &(*link)->next;
	struct connection_open *open =
		(struct connection_open *)note_queue_take_at(&w->waiting, link);
	if (open)
		say_closed(open);
}

static void close_one(struct worker *w, struct connection_close *note)
{
	struct connection *c = find_connection(w, note->connection);
	if (c && note->leave)
		connection_leave(c);
	else if (c)
		connection_close(c);
	else
		close_waiting(w, note->connection);
	free(note);
}

static bool start_connection(struct worker *w, struct connection_open *open)
{
	if (!descriptors_take(DESCRIPTORS_HOSTS))
		return false;
	if (connection_start(w, open))
		return true;
	descriptors_give(DESCRIPTORS_HOSTS);
	return false;
}

/* A lack of descriptors is no fault of the host's: to qmgr it looks like one that is slow to answer. */
void worker_open(struct worker *w, struct connection_open *open)
{
	assert(loop_is_ours(w->loop));
	if (w->parting) {
		say_closed(open);
		return;
	}
	if (!w->waiting.first && start_connection(w, open))
		return;
	note_queue_put(&w->waiting, &open->note);
	if (!timer_active(&w->again)) {
		log_event(LOG_LEVEL_WARNING, "descriptors", "reason",
			  "no more for connections to hosts; they wait", NULL);
		loop_timer_in(w->loop, &w->again, DESCRIPTORS_PAUSE_MS);
	}
}

static void on_again(void *owner)
{
	struct worker *w = owner;
	struct connection_open *open;
	while ((open = first_waiting(w)) && start_connection(w, open))
		;
	if (!open)
		return;
	note_queue_return(&w->waiting, &open->note);
	loop_timer_in(w->loop, &w->again, DESCRIPTORS_PAUSE_MS);
}

static void close_all_waiting(struct worker *w)
{
	timer_stop(&w->loop->timers, &w->again);
	for (struct connection_open *open; (open = first_waiting(w));)
		say_closed(open);
}

static void part_connections(struct worker *w)
{
	struct connection *c, *next;
	w->parting = true;
	close_all_waiting(w);
	HASH_ITER(hh, w->connections, c, next)
	connection_part(c);
}

/* Who posted it may be gone as well. */
static void discard_note(struct note *n)
{
	if (n->type == CONNECTION_OPEN) {
		struct connection_open *open = (struct connection_open *)n;
		connection_open_free(&open);
	} else if (n->type == DELIVERY_GIVE) {
		struct delivery *d = (struct delivery *)n;
		delivery_free(&d);
	} else if (n->type == SECRET_ANSWER) {
		struct secret_ask *a = (struct secret_ask *)n;
		secret_ask_free(&a);
	} else {
		free(n);
	}
}

static void receive_note(void *owner, struct note *n)
{
	struct worker *w = owner;
	if (w->stopped) {
		discard_note(n);
		return;
	}
	switch (n->type) {
	case CONNECTION_OPEN:
		worker_open(w, (struct connection_open *)n);
		break;
	case DELIVERY_GIVE:
		give_delivery(w, (struct delivery *)n);
		break;
	case SECRET_ANSWER:
		have_secret(w, (struct secret_ask *)n);
		break;
	case WORKER_PART:
		part_connections(w);
		free(n);
		break;
	default:
		assert(n->type == CONNECTION_CLOSE);
		close_one(w, (struct connection_close *)n);
	}
}

struct worker *worker_new(int number, struct secrets *secrets)
{
	struct worker *w = mem_zalloc(sizeof *w);
	snprintf(w->name, sizeof w->name, "smtpc-%d", number);
	w->loop = loop_new(w->name, receive_note, NULL, w);
	w->tls = tls_client_context();
	w->sasl = sasl_client_context();
	w->secrets = secrets;
	SSL_CTX_sess_set_new_cb(w->tls, connection_new_session);
	sessions_init(&w->sessions);
	note_queue_init(&w->waiting);
	timer_init(&w->again, on_again, w);
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
	close_all_waiting(w);
	while (w->connections)
		connection_drop(w->connections);
}

void worker_free(struct worker **wp)
{
	struct worker *w = *wp;
	if (!w)
		return;
	worker_stop(w);
	assert(!w->connections && !w->waiting.first);
	assert(!timer_active(&w->again));
	loop_free(&w->loop);
	sessions_fini(&w->sessions);
	SSL_CTX_free(w->tls);
	sasl_client_context_free(w->sasl);
	free(w);
	*wp = NULL;
}
