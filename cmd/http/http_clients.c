/* SPDX-License-Identifier: ISC */
#include "cmd/http/http_clients.h"

#include "base/clock.h"
#include "base/descriptors.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>

struct http_client {
	struct list link;
	int64_t since_ms; /* steady clock: in this list */
	int fd;
};

static struct http_client *first_client(struct list *l)
{
	return list_empty(l) ? NULL : list_entry(l->next, struct http_client, link);
}

static struct http_client *client_of(struct MHD_Connection *c)
{
	return MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static void set_timer(struct http_clients *all)
{
	const struct http_client *reading = first_client(&all->reading),
				 *replying = first_client(&all->replying);
	int64_t due_ms = INT64_MAX;
	if (reading)
		due_ms = reading->since_ms + HTTP_READING_MS;
	if (replying && replying->since_ms + HTTP_REPLYING_MS < due_ms)
		due_ms = replying->since_ms + HTTP_REPLYING_MS;
	if (due_ms < INT64_MAX)
		timer_start(&all->loop->timers, &all->late, due_ms);
	else
		timer_stop(&all->loop->timers, &all->late);
}

static void move_client(struct http_clients *all, struct http_client *c, struct list *to)
{
	assert(all->n > 0);
	list_move(to, &c->link);
	c->since_ms = clock_steady_ms();
	set_timer(all);
}

/* The library sees that it has ended, and says so; until then it is in no list. */
static void end_client(struct http_client *c)
{
	list_remove(&c->link);
	list_init(&c->link);
	shutdown(c->fd, SHUT_RDWR);
}

static void end_late(struct list *l, int64_t most_ms)
{
	const int64_t now_ms = clock_steady_ms();
	struct http_client *c;
	while ((c = first_client(l)) && now_ms - c->since_ms >= most_ms)
		end_client(c);
}

static void on_late(void *owner)
{
	struct http_clients *all = owner;
	end_late(&all->reading, HTTP_READING_MS);
	end_late(&all->replying, HTTP_REPLYING_MS);
	set_timer(all);
}

static void make_room(struct http_clients *all)
{
	struct http_client *c = first_client(&all->reading);
	if (!c)
		c = first_client(&all->replying);
	if (all->n > HTTP_CLIENTS_MAX - HTTP_CLIENTS_SPARE && c)
		end_client(c);
}

void http_clients_init(struct http_clients *all, struct loop *l)
{
	*all = (struct http_clients){.loop = l};
	list_init(&all->reading);
	list_init(&all->replying);
	list_init(&all->listening);
	timer_init(&all->late, on_late, all);
}

void http_clients_notify(struct http_clients *all, struct MHD_Connection *connection,
			 void **context, enum MHD_ConnectionNotificationCode what)
{
	struct http_client *c = *context;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		assert(!c);
		*context = c = mem_zalloc(sizeof *c);
		c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)
				->connect_fd;
		list_init(&c->link);
		all->n++;
		descriptors_count(DESCRIPTORS_HTTP);
		make_room(all);
		move_client(all, c, &all->reading);
		return;
	}
	list_remove(&c->link);
	free(c);
	*context = NULL;
	assert(all->n > 0);
	all->n--;
	descriptors_give(DESCRIPTORS_HTTP);
	set_timer(all);
}

/* One that has been ended stays so. */
void http_clients_move(struct http_clients *all, struct MHD_Connection *connection, struct list *to)
{
	struct http_client *c = client_of(connection);
	assert(to == &all->reading || to == &all->replying || to == &all->listening);
	if (!list_empty(&c->link))
		move_client(all, c, to);
}
