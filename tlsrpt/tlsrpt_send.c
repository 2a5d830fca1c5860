/* SPDX-License-Identifier: ISC */
#include "tlsrpt/tlsrpt_send.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "spool/spool.h"
#include "tlsrpt/tlsrpt_report.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_FIRST_S = 300, WAIT_MOST_S = 3600, POST_MS = 60000, FOR_RECORD = -1 };

/* Of one HTTPS recipient. */
struct post {
	struct tlsrpt_report *report;
	int n;
	struct https_request *request;
};

static struct tlsrpt_sender sender_of(const struct tlsrpt *t)
{
	const struct conf_tls_report *c = &t->conf->tls_report;
	return (struct tlsrpt_sender){.hostname = t->hostname,
				      .organization =
					      *c->organization ? c->organization : t->hostname,
				      .contact = *c->contact ? c->contact : t->from,
				      .from = t->from};
}

static void free_targets(struct tlsrpt_report *r)
{
	for (int i = 0; i < r->ntarget; i++)
		free(r->target[i].to);
	mem_free(&r->target);
	r->ntarget = 0;
}

static bool all_have_it(const struct tlsrpt_report *r)
{
	for (int i = 0; i < r->ntarget; i++)
		if (!tlsrpt_report_went_to(r, r->target[i].to))
			return false;
	return true;
}

/* Whatever was under way has ended. later: somebody is still to get it, or nobody knows. */
static void rest_report(struct tlsrpt_report *r, bool later)
{
	struct tlsrpt *t = r->tlsrpt;
	assert(r->step != TLSRPT_COUNTING);
	free_targets(r);
	assert(t->sending > 0 && r->open == 0);
	t->sending--;
	r->step = TLSRPT_COUNTING;
	tlsrpt_save_soon(t);
	if (!later) {
		tlsrpt_tally_drop(&t->tally, r);
		return;
	}
	r->wait_s = r->wait_s == 0 ? WAIT_FIRST_S : r->wait_s * 2;
	if (r->wait_s > WAIT_MOST_S)
		r->wait_s = WAIT_MOST_S;
	r->due_s = date_ms() / 1000 + r->wait_s;
}

static void log_delivery(const struct tlsrpt_report *r, const char *to, const char *failure)
{
	log_event(failure ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "tls_report", "domain", r->domain,
		  "to", to, "result", failure ? "failed" : "sent", "reason", failure, NULL);
	metric_cell_add(metric_cell(FAMILY_tls_reports, failure ? "failed" : "sent", NULL), 1);
}

/* failure: a clause; NULL: it has the report. */
static void end_delivery(struct tlsrpt_report *r, int n, const char *failure)
{
	assert(r->step == TLSRPT_SENDING && r->open > 0 && n >= 0 && n < r->ntarget);
	log_delivery(r, r->target[n].to, failure);
	if (!failure)
		tlsrpt_report_add_sent(r, r->target[n].to);
	if (--r->open == 0)
		rest_report(r, !all_have_it(r));
}

static void send_mail(struct tlsrpt_report *r, int n)
{
	struct tlsrpt *t = r->tlsrpt;
	struct tlsrpt_sender by = sender_of(t);
	struct buf text = {0};
	size_t len;
	struct spool_store *store = mem_zalloc(sizeof *store);
	struct envelope *e = store->envelope = envelope_new();
	tlsrpt_report_mail(r, &by, r->target[n].to, date_ms(), &text);
	char *bytes = buf_steal(&text, &len);
	e->id = store->id = ident_new();
	e->arrived_ms = clock_wall_ms();
	e->sender = mem_strdup(t->from);
	e->flow = mem_strdup(ENVELOPE_FLOW_REPORTS);
	e->body = BODY_8BITMIME;
	e->tls = ENVELOPE_TLS_WAIVED; /* RFC 8460 3: what keeps mail back must not keep this */
	e->size = len;
	envelope_add(e, r->target[n].to);
	store->content = content_in_memory(bytes, len);
	store->note.type = SPOOL_STORE;
	store->reply_to = t->loop;
	store->owner = r;
	store->cookie = (uint64_t)n;
	store->log = log_hold(LOG_LEVEL_INFO, "queued", "id", log_id(e->id), "via", "tls_report",
			      "flow", ENVELOPE_FLOW_REPORTS, "from", t->from, "nrcpt",
			      log_number(1), "size", log_number((int64_t)len), NULL);
	t->edges.store(t->edges.context, t->conf, store);
}

void tlsrpt_send_stored(struct tlsrpt *t, struct spool_store *store)
{
	struct tlsrpt_report *r = store->owner;
	if (t->https)
		end_delivery(r, (int)store->cookie,
			     store->stored ? NULL : "the queue does not take it now");
	free(store);
}

/* Host and port of a URL as tlsrpt_record.h lets it pass. */
static char *host_of(const char *url, int *port)
{
	const char *host = url + strlen("https://");
	size_t len = strcspn(host, ":/?#");
	*port = host[len] == ':' ? atoi(host + len + 1) : 443;
	return mem_strndup(host, len);
}

static void ask_dns(struct tlsrpt_report *r, enum resolve_kind kind, const char *name, int order)
{
	struct tlsrpt *t = r->tlsrpt;
	struct resolve *q = resolve_new(kind, name, t->loop, r);
	q->order = order;
	t->edges.to_dns(t->edges.context, &q->note);
}

static void send_to(struct tlsrpt_report *r, int n)
{
	int port;
	if (!r->target[n].https) {
		send_mail(r, n);
		return;
	}
	char *host = host_of(r->target[n].to, &port);
	ask_dns(r, RESOLVE_HOST, host, n);
	free(host);
}

static void on_posted(void *owner, const struct https_answer *a)
{
	struct post *p = owner;
	assert(p->report->target[p->n].post == p);
	bool answered = a->status >= 200; /* whatever became of the rest */
	bool taken = answered && a->status / 100 == 2;
	char *failure = taken	   ? NULL
			: answered ? mem_printf("it answers %ld", a->status)
				   : mem_strdup(a->error);
	p->report->target[p->n].post = NULL;
	end_delivery(p->report, p->n, failure);
	free(failure);
	free(p);
}

static void post_to(struct tlsrpt_report *r, int n, const struct resolve *where)
{
	struct tlsrpt *t = r->tlsrpt;
	struct tlsrpt_sender by = sender_of(t);
	struct buf report = {0}, at = {0};
	struct post *p = mem_zalloc(sizeof *p);
	int port;
	char *host = host_of(r->target[n].to, &port);
	buf_printf(&at, "%s:%d:", host, port);
	https_put_addresses(&at, where);
	tlsrpt_report_write(r, &by, &report);
	assert(n >= 0 && n < r->ntarget && !r->target[n].post);
	*p = (struct post){.report = r, .n = n};
	struct https_order order = {.url = r->target[n].to,
				    .ca = t->conf->tls.ca,
				    .at = buf_cstr(&at),
				    .body = &report,
				    .content_type = TLSRPT_TYPE,
				    .timeout_ms = POST_MS};
	p->request = https_begin(t->https, &order, on_posted, p);
	r->target[n].post = p;
	buf_fini(&report);
	buf_fini(&at);
	free(host);
}

/* RFC 8460 3: of several records none counts. */
static void read_record(struct tlsrpt_report *r, const struct resolve *a)
{
	const char *record = NULL;
	int n = 0;
	for (int i = 0; i < a->ntxt; i++)
		if (tlsrpt_record_is(a->txt[i])) {
			record = a->txt[i];
			n++;
		}
	if (n != 1)
		return;
	assert(!r->target && r->ntarget == 0);
	r->target = mem_zalloc(TLSRPT_RECIPIENTS_MAX * sizeof *r->target);
	r->ntarget = tlsrpt_record_parse(record, r->target, TLSRPT_RECIPIENTS_MAX);
}

static void have_record(struct tlsrpt_report *r, const struct resolve *a)
{
	read_record(r, a);
	if (a->failure || r->ntarget == 0 || all_have_it(r)) {
		rest_report(r, a->failure != NULL);
		return;
	}
	int n = r->ntarget;
	r->step = TLSRPT_SENDING;
	r->open = 1; /* until all have begun */
	for (int i = 0; i < n; i++)
		if (!tlsrpt_report_went_to(r, r->target[i].to)) {
			r->open++;
			send_to(r, i);
		}
	if (--r->open == 0)
		rest_report(r, !all_have_it(r));
}

void tlsrpt_send_resolved(struct tlsrpt *t, struct resolve *a)
{
	struct tlsrpt_report *r = a->owner;
	if (!t->https) { /* at the end nobody is left to hear of it */
		resolve_free(&a);
		return;
	}
	assert(r->step == (a->order == FOR_RECORD ? TLSRPT_RECORD : TLSRPT_SENDING));
	if (a->order == FOR_RECORD)
		have_record(r, a);
	else if (a->nhost == 0)
		end_delivery(r, a->order, a->failure->text);
	else
		post_to(r, a->order, a);
	resolve_free(&a);
}

void tlsrpt_send_begin(struct tlsrpt *t, struct tlsrpt_report *r)
{
	char *name = mem_printf("_smtp._tls.%s", r->domain);
	assert(r->step == TLSRPT_COUNTING && r->open == 0 && !r->target);
	r->tlsrpt = t;
	r->step = TLSRPT_RECORD;
	t->sending++;
	ask_dns(r, RESOLVE_TXT, name, FOR_RECORD);
	free(name);
}

void tlsrpt_send_drop(struct tlsrpt_report *r)
{
	for (int i = 0; i < r->ntarget; i++)
		if (r->target[i].post) {
			https_drop(&r->target[i].post->request);
			free(r->target[i].post);
		}
	free_targets(r);
	r->open = 0;
}
