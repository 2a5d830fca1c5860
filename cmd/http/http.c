/* SPDX-License-Identifier: ISC */
#include "cmd/http/http_core.h"

#include "base/address.h"
#include "base/descriptors.h"
#include "base/mem.h"
#include "cmd/http/http_look.h"
#include "cmd/maildrop/maildrop.h"
#include "qmgr/dest_command.h"
#include "qmgr/explain.h"
#include "qmgr/flow_command.h"
#include "replica/node.h"

#include <assert.h>
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

enum { SILENCE_S = 10 }; /* of one who is to read; the rest is http_clients.h */

enum http_note { HTTP_MOVE = NOTES_FROM(NOTES_OF_HTTP), HTTP_CLOSE, HTTP_CONF };

/* From main. */
struct http_order {
	struct note note;
	struct MHD_Daemon *daemon;
	struct conf *conf; /* a reference */
	sem_t *done;	   /* or NULL */
};

static void on_client(void *owner, struct MHD_Connection *c, void **context,
		      enum MHD_ConnectionNotificationCode what)
{
	struct http *h = owner;
	http_clients_notify(&h->clients, c, context, what);
	if (what == MHD_CONNECTION_NOTIFY_CLOSED)
		http_daemon_lost_one(&h->daemon);
}

static void open_daemon(struct http *h, struct MHD_Daemon *library)
{
	if (!library)
		return;
	http_daemon_open(&h->daemon, library);
	page_watch_start(&h->watch);
}

/* The library ends only when nothing is suspended. */
static void close_daemon(struct http *h)
{
	if (!h->daemon.library)
		return;
	page_watch_stop(&h->watch);
	http_asks_drop(h);
	http_events_drop(&h->events);
	http_daemon_close(&h->daemon);
}

static void use_conf(struct http *h, struct conf *conf)
{
	if (!conf)
		return;
	conf_unref(h->conf);
	h->conf = conf;
}

static void obey_order(struct http *h, struct http_order *o)
{
	if (o->note.type != HTTP_CONF)
		close_daemon(h);
	use_conf(h, o->conf);
	if (o->note.type == HTTP_MOVE)
		open_daemon(h, o->daemon);
	if (o->done)
		sem_post(o->done);
	free(o);
}

static void give_to_asker(void *owner, struct note *note)
{
	struct asker *a = owner;
	magic_check(a, ASKER_MAGIC);
	a->answer(a, note);
}

static void receive_note(void *owner, struct note *note)
{
	struct http *h = owner;
	switch (note->type) {
	case SPOOL_COMMAND:
		give_to_asker(((struct spool_command *)note)->owner, note);
		break;
	case DEST_COMMAND:
		give_to_asker(((struct dest_command *)note)->owner, note);
		break;
	case FLOW_COMMAND:
		give_to_asker(((struct flow_command *)note)->owner, note);
		break;
	case QMGR_EXPLAIN:
		give_to_asker(((struct explain_question *)note)->owner, note);
		break;
	case MAILDROP_SHAPE:
		give_to_asker(((struct maildrop_shape *)note)->owner, note);
		break;
	case QMGR_SNAPSHOT:
		glance_taken(&h->glance, (struct snapshot *)note);
		break;
	case CLUSTER_VIEW:
		cluster_view_free(&h->nodes);
		h->nodes = (struct cluster_view *)note;
		break;
	case NODE_VIEW:
		node_view_keep(&h->epochs, (struct node_view *)note);
		break;
	case LIMITER_TOP:
		limiter_top_free(&h->top);
		h->top = (struct limiter_top *)note;
		break;
	default:
		obey_order(h, (struct http_order *)note);
	}
}

static void post_order(struct http *h, int type, struct MHD_Daemon *daemon, struct conf *conf,
		       sem_t *done)
{
	struct http_order *o = mailbox_note(sizeof *o, type);
	o->daemon = daemon;
	o->conf = conf ? conf_ref(conf) : NULL;
	o->done = done;
	loop_post(h->loop, &o->note);
}

void http_leave(struct http *h)
{
	sem_t done;
	if (!h->loop->running) {
		mailbox_drain(&h->loop->mailbox);
		close_daemon(h);
		return;
	}
	sem_init(&done, 0, 0);
	post_order(h, HTTP_CLOSE, NULL, NULL, &done);
	while (sem_wait(&done) != 0)
		;
	sem_destroy(&done);
}

static enum MHD_Result may_connect(void *owner, const struct sockaddr *from, socklen_t size)
{
	(void)owner;
	(void)from;
	(void)size;
	return descriptors_room(DESCRIPTORS_HTTP) ? MHD_YES : MHD_NO;
}

static struct MHD_Daemon *listen_at(struct http *h, const char *where, struct buf *error)
{
	union address a;
	if (!address_parse_with_port(where, &a)) {
		buf_printf(error, "http: not an address and port: %s\n", where);
		return NULL;
	}
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
			 (a.sa.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0u);
	struct MHD_Daemon *daemon = MHD_start_daemon(
		flags, 0, may_connect, NULL, http_answer, h, MHD_OPTION_SOCK_ADDR, &a.sa,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)HTTP_CLIENTS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENCE_S, MHD_OPTION_NOTIFY_CONNECTION,
		on_client, h, MHD_OPTION_NOTIFY_COMPLETED, http_completed, h,
		MHD_OPTION_UNESCAPE_CALLBACK, http_unescape, NULL, MHD_OPTION_END);
	if (!daemon)
		buf_printf(error, "http: can't listen on %s: %s\n", where, strerror(errno));
	return daemon;
}

bool http_move(struct http *h, struct conf *conf, struct buf *error)
{
	http_leave(h);
	struct MHD_Daemon *daemon = *conf->http ? listen_at(h, conf->http, error) : NULL;
	if (*conf->http && !daemon)
		return false;
	post_order(h, HTTP_MOVE, daemon, conf, NULL);
	return true;
}

void http_reload(struct http *h, struct conf *conf)
{
	post_order(h, HTTP_CONF, NULL, conf, NULL);
}

struct http *http_new(struct conf *conf, const struct http_asks *asks, int64_t started_ms)
{
	struct http *h = mem_zalloc(sizeof *h);
	h->loop = loop_new("http", receive_note, NULL, h);
	h->qmgr = qmgr_loop(asks->qmgr);
	h->spool = asks->spool;
	h->maildrop = asks->maildrop;
	h->conf = conf_ref(conf);
	h->started_ms = started_ms;
	list_init(&h->asks);
	list_init(&h->looks);
	glance_init(&h->glance, h->loop, h->qmgr);
	http_clients_init(&h->clients, h->loop);
	http_daemon_init(&h->daemon, h->loop, &h->clients);
	http_events_init(&h->events, &h->daemon);
	page_watch_init(&h->watch, h);
	return h;
}

struct loop *http_loop(struct http *h)
{
	return h->loop;
}

void http_start(struct http *h)
{
	loop_start(h->loop);
}

void http_stop(struct http *h)
{
	http_leave(h);
	loop_stop(h->loop);
}

void http_free(struct http **hp)
{
	struct http *h = mem_take(hp);
	if (!h)
		return;
	http_leave(h); /* it may never have been started */
	mailbox_drain(&h->loop->mailbox);
	http_asks_free(h);
	http_looks_free(h);
	assert(list_empty(&h->asks) && list_empty(&h->looks) && h->heavy == 0);
	assert(h->events.n == 0 && h->clients.n == 0);
	page_watch_fini(&h->watch);
	assert(list_empty(&h->glance.waiting));
	glance_fini(&h->glance);
	cluster_view_free(&h->nodes);
	node_view_free(&h->epochs);
	limiter_top_free(&h->top);
	loop_free(&h->loop);
	conf_unref(h->conf);
	free(h);
}
