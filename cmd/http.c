/* SPDX-License-Identifier: ISC */
#include "cmd/http.h"

#include "base/address.h"
#include "base/mem.h"
#include "base/metrics.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS_MAX = 64, TIMEOUT_S = 10 };

struct http {
	struct MHD_Daemon *daemon;
	struct spool *spool;
};

/* Everything the relay counts, under the names that INTERFACE and dashboards know. */
static void write_metrics(struct http *h, struct buf *to)
{
	(void)h;
	metrics_prometheus(to);
}

static void write_stats(struct http *h, struct buf *to)
{
	(void)h;
	metrics_print(to, true);
}

static void write_health(struct http *h, struct buf *to)
{
	buf_puts(to, spool_accepting(h->spool) ? "ok\n" : "not accepting mail\n");
}

static const struct page {
	const char *path, *type;
	void (*write)(struct http *, struct buf *);
} pages[] = {
	{"/metrics", "text/plain; version=0.0.4", write_metrics},
	{"/api/stats", "application/json", write_stats},
	{"/healthz", "text/plain", write_health},
};

static enum MHD_Result reply(struct MHD_Connection *c, unsigned status, const char *type,
			     struct buf *text)
{
	size_t len;
	char *bytes = buf_steal(text, &len);
	struct MHD_Response *r = MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_MUST_FREE);
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	enum MHD_Result result = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return result;
}

static unsigned status_of(const struct http *h, const struct page *page)
{
	bool sick = page->write == write_health && !spool_accepting(h->spool);
	return sick ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK;
}

static enum MHD_Result answer(void *owner, struct MHD_Connection *c, const char *url,
			      const char *method, const char *version, const char *data,
			      size_t *data_len, void **state)
{
	(void)version;
	(void)data;
	(void)data_len;
	(void)state;
	struct http *h = owner;
	struct buf text;
	buf_init(&text);
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
		buf_puts(&text, "read-only\n");
		return reply(c, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", &text);
	}
	for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
		if (strcmp(url, pages[i].path) != 0)
			continue;
		pages[i].write(h, &text);
		return reply(c, status_of(h, &pages[i]), pages[i].type, &text);
	}
	buf_puts(&text, "not found\n");
	return reply(c, MHD_HTTP_NOT_FOUND, "text/plain", &text);
}

struct http *http_start(const struct conf *conf, struct spool *spool, struct buf *error)
{
	union address a;
	if (!address_parse_with_port(conf->http, &a)) {
		buf_printf(error, "http: not an address and port: %s\n", conf->http);
		return NULL;
	}
	struct http *h = mem_zalloc(sizeof *h);
	h->spool = spool;
	h->daemon = MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | (a.sa.sa_family == AF_INET6 ? MHD_USE_IPv6 : 0),
		0, NULL, NULL, answer, h, MHD_OPTION_SOCK_ADDR, &a.sa, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)TIMEOUT_S,
		MHD_OPTION_END);
	if (h->daemon)
		return h;
	buf_printf(error, "http: can't listen on %s: %s\n", conf->http, strerror(errno));
	free(h);
	return NULL;
}

void http_stop(struct http **hp)
{
	struct http *h = *hp;
	if (!h)
		return;
	MHD_stop_daemon(h->daemon);
	free(h);
	*hp = NULL;
}
