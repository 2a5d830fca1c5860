/* SPDX-License-Identifier: ISC */
#include "cmd/http/http_events.h"

#include "base/mem.h"
#include "cmd/http/http_daemon.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 32 << 10 };

struct listener_of_events {
	struct list link;
	struct http_events *events;
	struct MHD_Connection *connection;
	struct buf out;
	bool suspended;
	unsigned had[EVENTS_KINDS];
};

static ssize_t read_events(void *owner, uint64_t at, char *to, size_t max)
{
	(void)at;
	struct listener_of_events *l = owner;
	size_t len = buf_len(&l->out) < max ? buf_len(&l->out) : max;
	if (len == 0) {
		buf_release(&l->out);
		MHD_suspend_connection(l->connection);
		l->suspended = true;
		return 0;
	}
	memcpy(to, buf_data(&l->out), len);
	buf_consume(&l->out, len);
	return (ssize_t)len;
}

static void listener_free(void *owner)
{
	struct listener_of_events *l = owner;
	list_remove(&l->link);
	assert(l->events->n > 0);
	l->events->n--;
	buf_fini(&l->out);
	free(l);
}

void http_events_init(struct http_events *e, struct http_daemon *d)
{
	*e = (struct http_events){.daemon = d};
	list_init(&e->listeners);
}

struct MHD_Response *http_events_listen(struct http_events *e, struct MHD_Connection *c)
{
	if (e->n >= EVENTS_LISTENERS_MAX)
		return NULL;
	struct listener_of_events *l = mem_zalloc(sizeof *l);
	l->events = e;
	l->connection = c;
	list_append(&e->listeners, &l->link);
	e->n++;
	buf_puts(&l->out, "retry: 2000\n\n");
	return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_events, l,
						 listener_free);
}

static void wake_listener(struct listener_of_events *l)
{
	if (!l->suspended)
		return;
	l->suspended = false;
	MHD_resume_connection(l->connection);
}

void http_events_send(struct http_events *e, const struct http_event event[EVENTS_KINDS])
{
	list_each_entry (struct listener_of_events, l, link, &e->listeners) {
		if (buf_len(&l->out) > 0)
			continue;
		for (int i = 0; i < EVENTS_KINDS; i++) {
			if (event[i].number == l->had[i])
				continue;
			l->had[i] = event[i].number;
			buf_printf(&l->out, "event: %s\ndata: ", event[i].name);
			buf_append(&l->out, buf_data(event[i].text), buf_len(event[i].text));
			buf_puts(&l->out, "\n\n");
		}
		if (buf_len(&l->out) > 0)
			wake_listener(l);
	}
	http_daemon_wake(e->daemon);
}

void http_events_drop(struct http_events *e)
{
	list_each (link, tmp, &e->listeners)
		wake_listener(list_entry(link, struct listener_of_events, link));
}
