/* SPDX-License-Identifier: ISC */
/* A request: who asks, what for, and the head of what is replied. */
#include "base/date.h"
#include "base/mem.h"
#include "cmd/http/http_ask.h"
#include "cmd/http/http_host.h"
#include "cmd/http/page_files.h"
#include "cmd/text/condition_print.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Nothing from elsewhere, nothing in the page itself, and nobody's frame. */
static const char policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
	"img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static const char not_ours[] = "this is not my name\n";

static enum MHD_Result send_reply(struct MHD_Connection *c, struct MHD_Response *r, unsigned status,
				  const char *type)
{
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "Content-Security-Policy", policy);
	MHD_add_response_header(r, "Referrer-Policy", "no-referrer");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	enum MHD_Result result = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return result;
}

static enum MHD_Result send_text(struct MHD_Connection *c, unsigned status, const char *text)
{
	struct MHD_Response *r =
		MHD_create_response_from_buffer(strlen(text), (char *)text, MHD_RESPMEM_PERSISTENT);
	return send_reply(c, r, status, "text/plain; charset=utf-8");
}

static enum MHD_Result send_file(struct MHD_Connection *c, const struct page_file *f)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(
		(size_t)(f->end - f->begin), (char *)f->begin, MHD_RESPMEM_PERSISTENT);
	return send_reply(c, r, MHD_HTTP_OK, f->type);
}

static enum MHD_Result send_answer(struct http_ask *a)
{
	assert(a->state == ASK_ANSWERED);
	size_t len;
	char *bytes = buf_steal(&a->out, &len);
	struct MHD_Response *r = MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_MUST_FREE);
	char age[24];
	snprintf(age, sizeof age, "%" PRId64, a->age_s);
	if (a->age_s > 0)
		MHD_add_response_header(r, MHD_HTTP_HEADER_AGE, age);
	return send_reply(a->connection, r, a->status, a->type);
}

static void ask_health(struct http_ask *a)
{
	bool takes = spool_accepting(a->http->spool) && !condition_stops_mail();
	struct conditions c;
	conditions_take(&c);
	buf_puts(&a->out, takes ? "ok\n" : "not accepting mail\n");
	for (int i = 0; i < c.n; i++) {
		condition_print_line(&a->out, &c.row[i], date_ms());
		buf_puts(&a->out, "\n");
	}
	conditions_fini(&c);
	a->type = "text/plain; charset=utf-8";
	http_ask_done(a, takes ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE);
}

/* Of a stream the library sends an end even where the head alone is wanted: the next reply would begin with it. */
static enum MHD_Result send_no_event(struct MHD_Connection *c)
{
	struct MHD_Response *r =
		MHD_create_response_from_buffer(0, (char *)"", MHD_RESPMEM_PERSISTENT);
	return send_reply(c, r, MHD_HTTP_OK, "text/event-stream");
}

static enum MHD_Result send_events(struct http_ask *a)
{
	if (a->head_only)
		return send_no_event(a->connection);
	struct MHD_Response *r = http_events_listen(&a->http->events, a->connection);
	if (!r)
		return send_text(a->connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				 "too many listen already\n");
	a->state = ASK_LISTENING;
	http_clients_move(&a->http->clients, a->connection, &a->http->clients.listening);
	return send_reply(a->connection, r, MHD_HTTP_OK, "text/event-stream");
}

static enum MHD_Result begin_request(struct http_ask *a, const char *path)
{
	static const struct {
		const char *path;
		void (*ask)(struct http_ask *);
		enum MHD_Result (*send)(struct http_ask *);
	} table[] = {
		{"/metrics", http_ask_metrics, NULL},	  {"/api/stats", http_ask_stats, NULL},
		{"/api/queue", http_ask_queue, NULL},	  {"/api/shape", http_ask_shape, NULL},
		{"/api/dest", http_ask_dest, NULL},	  {"/api/explain", http_ask_explain, NULL},
		{"/api/reasons", http_ask_reasons, NULL}, {"/api/search", http_ask_search, NULL},
		{"/api/nodes", http_ask_nodes, NULL},	  {"/api/flows", http_ask_flows, NULL},
		{"/healthz", ask_health, NULL},		  {"/events", NULL, send_events},
	};
	assert(a->state == ASK_NEW);
	const struct page_file *file = page_file(path);
	if (file)
		return send_file(a->connection, file);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (strcmp(path, table[i].path) != 0)
			continue;
		if (table[i].send)
			return table[i].send(a);
		table[i].ask(a);
		return a->state == ASK_ANSWERED ? send_answer(a) : MHD_YES;
	}
	return send_text(a->connection, MHD_HTTP_NOT_FOUND, "not found\n");
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

/* The byte that stands behind a percent sign; -1: there is none, and all stays. A byte of 0 would end the name before the rest of it, and a slash
 * in a path would be one that nobody wrote. */
static int decoded_byte(const char *at, bool in_path)
{
	if (!isxdigit((unsigned char)at[0]) || !isxdigit((unsigned char)at[1]))
		return -1;
	int byte = digit_of(at[0]) * 16 + digit_of(at[1]);
	return byte == '\0' || (in_path && byte == '/') ? -1 : byte;
}

/* The library calls for the path, which begins with a slash, and for each name and value behind it. */
size_t http_unescape(void *unused, struct MHD_Connection *c, char *text)
{
	bool in_path = *text == '/';
	char *to = text;
	(void)unused;
	(void)c;
	for (const char *at = text; *at; at++) {
		int byte = *at == '%' ? decoded_byte(at + 1, in_path) : -1;
		*to++ = byte < 0 ? *at : (char)byte;
		at += byte < 0 ? 0 : 2;
	}
	*to = '\0';
	return (size_t)(to - text);
}

/* A request of HTTP/1.0 may have no Host; no browser sends one without. */
static bool is_host_ours(const struct http *h, struct MHD_Connection *c)
{
	const char *host = MHD_lookup_connection_value(c, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
	return !host || http_host_is_ours(host, h->conf->own_name);
}

/* "http://HOST/PATH", as a proxy's client asks, has its host within it, and Host does not count (RFC 9112 3.2.2). */
static enum MHD_Result begin_target(struct http_ask *a, const char *target)
{
	static const char scheme[] = "http://";
	const struct http *h = a->http;
	if (strncasecmp(target, scheme, sizeof scheme - 1) != 0)
		return is_host_ours(h, a->connection)
			       ? begin_request(a, target)
			       : send_text(a->connection, MHD_HTTP_FORBIDDEN, not_ours);
	target += sizeof scheme - 1;
	size_t len = strcspn(target, "/");
	char *host = mem_strndup(target, len);
	bool ours = http_host_is_ours(host, h->conf->own_name);
	free(host);
	return ours ? begin_request(a, target[len] ? target + len : "/")
		    : send_text(a->connection, MHD_HTTP_FORBIDDEN, not_ours);
}

/* The library calls at the head, at the end, and when a suspended connection is resumed. */
enum MHD_Result http_answer(void *owner, struct MHD_Connection *c, const char *url,
			    const char *method, const char *version, const char *data,
			    size_t *data_len, void **state)
{
	(void)version;
	(void)data;
	struct http *h = owner;
	struct http_ask *a = *state;
	if (!a) {
		http_clients_move(&h->clients, c, &h->clients.replying);
		if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
			return send_text(c, MHD_HTTP_METHOD_NOT_ALLOWED, "read-only\n");
		*state = a = http_ask_new(h, c);
		a->head_only = strcmp(method, "HEAD") == 0;
		return MHD_YES;
	}
	if (*data_len > 0) {
		*data_len = 0;
		return MHD_YES;
	}
	if (a->state == ASK_ANSWERED)
		return send_answer(a);
	if (a->state == ASK_WAITING)
		return MHD_NO; /* dropped */
	return begin_target(a, url);
}

void http_completed(void *owner, struct MHD_Connection *c, void **state,
		    enum MHD_RequestTerminationCode why)
{
	struct http *h = owner;
	(void)why;
	http_clients_move(&h->clients, c, &h->clients.reading);
	if (*state)
		http_ask_closed(*state);
	*state = NULL;
}
