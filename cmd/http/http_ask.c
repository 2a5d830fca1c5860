/* SPDX-License-Identifier: ISC */
#include "cmd/http/http_ask.h"

#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "cmd/text/node_print.h"
#include "cmd/text/dest_print.h"
#include "cmd/text/flow_print.h"
#include "cmd/text/stats_print.h"
#include "qmgr/dest_command.h"
#include "qmgr/flow_command.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum { PAGE = 500 };

struct http_ask *http_ask_new(struct http *h, struct MHD_Connection *c)
{
	struct http_ask *a = mem_zalloc(sizeof *a);
	a->asker.magic = ASKER_MAGIC;
	a->http = h;
	a->connection = c;
	a->status = MHD_HTTP_OK;
	a->type = "application/x-ndjson";
	list_init(&a->glancer.link);
	list_init(&a->in_look);
	list_append(&h->asks, &a->link);
	return a;
}

static void ask_free(struct http_ask *a)
{
	magic_check(&a->asker, ASKER_MAGIC);
	glance_leave(&a->glancer);
	list_remove(&a->in_look);
	list_remove(&a->link);
	assert(a->http->heavy >= a->heavy);
	a->http->heavy -= a->heavy;
	buf_fini(&a->out);
	free(a->what);
	spool_command_free(&a->shown);
	magic_clear(&a->asker);
	free(a);
}

void http_ask_closed(struct http_ask *a)
{
	a->connection = NULL;
	if (!a->in_flight)
		ask_free(a);
}

void http_asks_drop(struct http *h)
{
	list_each_entry (struct http_ask, a, link, &h->asks) {
		glance_leave(&a->glancer);
		list_remove(&a->in_look);
		if (a->connection && a->state == ASK_WAITING)
			MHD_resume_connection(a->connection);
	}
}

void http_asks_free(struct http *h)
{
	list_each (link, tmp, &h->asks)
		ask_free(list_entry(link, struct http_ask, link));
}

void http_ask_wait(struct http_ask *a)
{
	assert(a->connection);
	assert(a->state == ASK_NEW || a->state == ASK_WAITING);
	if (a->state == ASK_NEW)
		MHD_suspend_connection(a->connection);
	a->state = ASK_WAITING;
}

void http_ask_post(struct http_ask *a, struct loop *to, struct note *note,
		   void (*answer)(struct asker *, struct note *))
{
	assert(!a->in_flight);
	a->asker.answer = answer;
	a->in_flight = true;
	http_ask_wait(a);
	loop_post(to, note);
}

void http_ask_done(struct http_ask *a, unsigned status)
{
	assert(!a->in_flight);
	assert(a->state == ASK_NEW || a->state == ASK_WAITING);
	bool waited = a->state == ASK_WAITING;
	a->status = status;
	a->state = ASK_ANSWERED;
	assert(a->http->heavy >= a->heavy);
	a->http->heavy -= a->heavy;
	a->heavy = false;
	if (!waited)
		return;
	assert(a->connection);
	MHD_resume_connection(a->connection);
	http_daemon_wake(&a->http->daemon);
}

void http_ask_refuse(struct http_ask *a, unsigned status, const char *why)
{
	buf_clear(&a->out);
	buf_printf(&a->out, "%s\n", why);
	a->type = "text/plain; charset=utf-8";
	http_ask_done(a, status);
}

void http_ask_unreadable(struct http_ask *a, int error)
{
	char *why = mem_printf("the message cannot be read from the queue: %s",
			       queue_print_error(error));
	http_ask_refuse(a, MHD_HTTP_INTERNAL_SERVER_ERROR, why);
	free(why);
}

bool http_ask_arrived(struct http_ask *a)
{
	const bool waited_for = a->connection;
	assert(a->in_flight);
	a->in_flight = false;
	if (!waited_for)
		ask_free(a);
	return waited_for;
}

/* --- counters */

static void answer_with_counters(struct glancer *g, const struct snapshot *snapshot)
{
	struct http_ask *a = list_entry(g, struct http_ask, glancer);
	struct stats_view view = {.accepting = spool_accepting(a->http->spool),
				  .uptime_ms = clock_steady_ms() - a->http->started_ms,
				  .snapshot = snapshot,
				  .top = a->http->top};
	stats_print(&a->out, a->form, &view);
	http_ask_done(a, MHD_HTTP_OK);
}

static void ask_counters(struct http_ask *a, enum metrics_form form, const char *type)
{
	a->form = form;
	a->type = type;
	a->glancer.look = answer_with_counters;
	glance_at(&a->http->glance, &a->glancer);
	if (a->state == ASK_NEW)
		http_ask_wait(a);
}

void http_ask_metrics(struct http_ask *a)
{
	ask_counters(a, METRICS_PROMETHEUS, "text/plain; version=0.0.4; charset=utf-8");
}

void http_ask_stats(struct http_ask *a)
{
	ask_counters(a, METRICS_JSON, "application/json");
}

/* --- lists */

const char *http_ask_value(const struct http_ask *a, const char *name)
{
	const char *value = MHD_lookup_connection_value(a->connection, MHD_GET_ARGUMENT_KIND, name);
	return value ? value : "";
}

bool http_ask_limit(struct http_ask *a, int64_t *rows)
{
	const char *limit =
		MHD_lookup_connection_value(a->connection, MHD_GET_ARGUMENT_KIND, "limit");
	char *end = NULL;
	errno = 0;
	*rows = limit ? strtol(limit, &end, 10) : ASK_ROWS;
	if (limit && (errno || end == limit || *end || *rows < 1 || *rows > ASK_ROWS_MAX)) {
		http_ask_refuse(a, MHD_HTTP_BAD_REQUEST, "limit: a number from 1 to 10000");
		return false;
	}
	return true;
}

/* False: it is refused. */
static bool begin_list(struct http_ask *a)
{
	if (!http_ask_limit(a, &a->left))
		return false;
	if (a->http->heavy >= ASKS_HEAVY_MAX) {
		http_ask_refuse(a, MHD_HTTP_SERVICE_UNAVAILABLE, "too many such questions at once");
		return false;
	}
	assert(!a->heavy);
	a->heavy = true;
	a->http->heavy++;
	return true;
}

static void ask_page(struct http_ask *a, void (*answer)(struct asker *, struct note *))
{
	struct spool_command *c = spool_command_new(SPOOL_LIST, a->http->loop, &a->asker);
	c->id = a->id;
	c->after = a->after;
	c->limit = a->left < PAGE ? (int)a->left : PAGE;
	http_ask_post(a, spool_loop(a->http->spool), &c->note, answer);
}

static void end_pages(struct http_ask *a)
{
	if (a->unread.messages > 0)
		queue_print_unread_json(&a->out, &a->unread);
	http_ask_done(a, MHD_HTTP_OK);
}

static void take_page(struct asker *asker, struct note *note)
{
	struct http_ask *a = (struct http_ask *)asker;
	struct spool_command *c = (struct spool_command *)note;
	if (!http_ask_arrived(a)) {
		spool_command_free(&c);
		return;
	}
	for (int i = 0; i < c->nrow; i++) {
		uint64_t id = c->row[i].envelope->id;
		a->after = id > a->after ? id : a->after;
		queue_print_json(&a->out, &c->row[i]);
	}
	a->left -= c->nrow;
	queue_unread_add(&a->unread, c);
	bool complete = c->nrow == 0 || a->left <= 0 || buf_len(&a->out) > ASK_BYTES_MAX;
	spool_command_free(&c);
	if (complete)
		end_pages(a);
	else
		ask_page(a, take_page);
}

static void take_one(struct asker *asker, struct note *note)
{
	struct http_ask *a = (struct http_ask *)asker;
	struct spool_command *c = (struct spool_command *)note;
	if (http_ask_arrived(a)) {
		if (c->nrow > 0)
			queue_print_json(&a->out, &c->row[0]);
		if (c->nrow > 0)
			http_ask_done(a, MHD_HTTP_OK);
		else if (c->error)
			http_ask_unreadable(a, c->error);
		else
			http_ask_refuse(a, MHD_HTTP_NOT_FOUND, "no such message in the queue");
	}
	spool_command_free(&c);
}

static void ask_one(struct http_ask *a, const char *id)
{
	if (!ident_parse(id, &a->id) || a->id == 0) {
		http_ask_refuse(a, MHD_HTTP_BAD_REQUEST, "id: that is none");
		return;
	}
	a->left = 1;
	ask_page(a, take_one);
}

void http_ask_queue(struct http_ask *a)
{
	const char *id = http_ask_value(a, "id");
	if (*id)
		ask_one(a, id);
	else if (begin_list(a))
		ask_page(a, take_page);
}

static void take_dest(struct asker *asker, struct note *note)
{
	struct http_ask *a = (struct http_ask *)asker;
	struct dest_command *c = (struct dest_command *)note;
	if (http_ask_arrived(a)) {
		dest_print_json(&a->out, c);
		if (c->name && c->found == 0)
			http_ask_refuse(a, MHD_HTTP_NOT_FOUND,
					"no such site, host or domain is known");
		else
			http_ask_done(a, MHD_HTTP_OK);
	}
	dest_command_free(&c);
}

void http_ask_dest(struct http_ask *a)
{
	const char *name = http_ask_value(a, "name");
	if (!begin_list(a))
		return;
	struct dest_command *c =
		dest_command_new(ORDER_LIST, *name ? name : NULL, a->http->loop, &a->asker);
	c->domains = true;
	c->past = *name != '\0';
	c->most = (int)a->left;
	http_ask_post(a, a->http->qmgr, &c->note, take_dest);
}

static void take_flows(struct asker *asker, struct note *note)
{
	struct http_ask *a = (struct http_ask *)asker;
	struct flow_command *c = (struct flow_command *)note;
	if (http_ask_arrived(a)) {
		struct flow_command first = *c;
		flow_print_sort(&first);
		if (first.nrow > a->left)
			first.nrow = (int)a->left;
		flow_print_json(&a->out, &first);
		http_ask_done(a, MHD_HTTP_OK);
	}
	flow_command_free(&c);
}

void http_ask_flows(struct http_ask *a)
{
	if (begin_list(a))
		http_ask_post(a, a->http->qmgr,
			      &flow_command_new(ORDER_LIST, NULL, a->http->loop, &a->asker)->note,
			      take_flows);
}

/* --- nodes */

void http_ask_nodes(struct http_ask *a)
{
	struct node_rows all;
	node_rows_init(&all, a->http->nodes, a->http->epochs);
	node_print_json(&a->out, &all);
	node_rows_fini(&all);
	http_ask_done(a, MHD_HTTP_OK);
}
