/* SPDX-License-Identifier: ISC */
#include "cmd/http/page_print.h"

#include "base/ident.h"
#include "base/log.h"
#include "base/metrics.h"
#include "cmd/cmd.h"
#include "cmd/text/condition_print.h"
#include "cmd/text/json_put.h"
#include "cmd/text/milter_print.h"
#include "cmd/text/node_rows.h"
#include "cmd/text/reply_words.h"

#include <assert.h>
#include <inttypes.h>

static void put_counts(struct buf *to, const struct page_point *p)
{
#define X(name) json_put_number(to, #name, p->n[PAGE_##name]);
	PAGE_COUNTS(X)
#undef X
}

static void put_gauges(struct buf *to)
{
	buf_puts(to, "\"queue\":{");
	json_put_number(to, "incoming", metrics_sum(METRIC_queue_incoming));
	json_put_number(to, "active", metrics_sum(METRIC_queue_active));
	json_put_number(to, "deferred", metrics_sum(METRIC_queue_deferred));
	json_put_number(to, "hold", metrics_sum(METRIC_queue_hold));
	json_put_end(to, '}');
	buf_puts(to, "\"connections\":{");
	json_put_number(to, "clients", metrics_sum(METRIC_server_connections));
	json_put_number(to, "connecting", metrics_sum(METRIC_client_connecting));
	json_put_number(to, "idle", metrics_sum(METRIC_client_idle));
	json_put_number(to, "busy", metrics_sum(METRIC_client_busy));
	json_put_end(to, '}');
}

static void put_commits(struct buf *to)
{
	struct histogram_sum seconds, messages;
	metrics_histogram(HISTOGRAM_commit_seconds, &seconds);
	metrics_histogram(HISTOGRAM_commit_messages, &messages);
	buf_puts(to, "\"commit\":{");
	json_put_number(to, "count", seconds.count);
	json_put_number(to, "sum_us", seconds.sum);
	json_put_number(to, "messages", messages.sum);
	buf_puts(to, "\"buckets\":[");
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		buf_printf(to, "%" PRId64 ",", seconds.bucket[i]);
	json_put_end(to, ']');
	buf_puts(to, "\"bounds_us\":[");
	for (int i = 0; i < HISTOGRAM_BUCKETS - 1; i++)
		buf_printf(to, "%" PRId64 ",", metrics_bounds(HISTOGRAM_commit_seconds)[i]);
	json_put_end(to, ']');
	json_put_end(to, '}');
}

static void put_domains(struct buf *to, const struct snapshot_site *s)
{
	json_put_number(to, "domains", s->domains);
	buf_printf(to, "\"domains_seen\":%s,", s->domains_seen ? "true" : "false");
	buf_puts(to, "\"domain\":[");
	for (int i = 0; i < SNAPSHOT_DOMAINS && s->domain[i]; i++) {
		log_json_string(to, s->domain[i]);
		buf_puts(to, ",");
	}
	json_put_end(to, ']');
}

static void put_site(struct buf *to, const struct snapshot_site *s)
{
	buf_puts(to, "{");
	json_put_text(to, "site", s->name);
	json_put_text(to, "transport", s->transport);
	json_put_text(to, "key", s->key);
	json_put_text(to, "provider", s->provider);
	json_put_text(to, "state", s->state);
	json_put_number(to, "window", s->window);
	json_put_number(to, "connections", s->connections);
	json_put_number(to, "connecting", s->connecting);
	json_put_number(to, "busy", s->busy);
	json_put_number(to, "waiting", s->waiting);
	json_put_number(to, "deferred", s->deferred);
	json_put_number(to, "attempts", s->verdicts + s->unreached);
	json_put_number(to, "verdicts", s->verdicts);
	json_put_number(to, "sent_lately", s->sent_lately);
	json_put_number(to, "deferred_lately", s->deferred_lately);
	json_put_number(to, "lately_ms", s->lately_ms);
	json_put_number(to, "oldest_ms", s->oldest_ms);
	json_put_number(to, "number", s->number);
	put_domains(to, s);
	json_put_number(to, "dead_in_ms", s->dead_in_ms);
	json_put_number(to, "pace_per_1000s", (int64_t)(s->pace * 1000));
	json_put_text(to, "last_class", s->last ? verdict_class_name(s->last->class) : NULL);
	json_put_number(to, "last_code", s->last ? s->last->code : 0);
	json_put_number(to, "last_ms", s->last ? s->last->when_ms : 0);
	json_put_text(to, "last_host", s->last ? s->last->host : NULL);
	json_put_text(to, "last", s->last ? s->last->text : NULL);
	json_put_end(to, '}');
}

static void put_sites(struct buf *to, const struct snapshot *s)
{
	json_put_number(to, "sites", s->sites);
	json_put_number(to, "dead", s->dead);
	buf_puts(to, "\"worst\":[");
	for (int i = 0; i < s->nsite; i++)
		put_site(to, &s->worst[i]);
	json_put_end(to, ']');
}

/* Those of the listeners, and how long each is good. */
static void put_certificates(struct buf *to)
{
	buf_puts(to, "\"certificates\":[");
	const struct metric_cell *c = NULL;
	while ((c = metric_cell_next(FAMILY_certificate_expiry, c))) {
		if (metric_cell_value(c) == METRIC_GONE)
			continue;
		buf_puts(to, "{");
		json_put_text(to, "file", metric_cell_label(c, 0));
		json_put_number(to, "left_s", metric_cell_value(c));
		json_put_end(to, '}');
	}
	json_put_end(to, ']');
}

/* Connections to next hops by what came of TLS, since the start. */
static void put_tls(struct buf *to, const struct snapshot *s)
{
	static const struct {
		const char *name;
		enum metric metric;
	} results[] = {{"dane", METRIC_tls_client_dane},
		       {"mta_sts", METRIC_tls_client_sts},
		       {"matched", METRIC_tls_client_matched},
		       {"unverified", METRIC_tls_client_unverified},
		       {"clear", METRIC_tls_client_clear},
		       {"untrusted", METRIC_tls_client_untrusted},
		       {"failed", METRIC_tls_client_failed},
		       {"missing", METRIC_tls_client_missing},
		       {"broken", METRIC_tls_client_broken}};
	buf_puts(to, "\"tls\":{");
	for (size_t i = 0; i < sizeof results / sizeof *results; i++)
		json_put_number(to, results[i].name, metrics_sum(results[i].metric));
	buf_puts(to, "\"unproven\":[");
	for (int i = 0; i < s->nunproven; i++)
		put_site(to, &s->unproven[i]);
	json_put_end(to, ']');
	put_certificates(to);
	json_put_end(to, '}');
}

/* null: the engine that would know it does not, or there is none. */
static void put_count(struct buf *to, const char *name, bool known, int64_t n)
{
	if (known)
		json_put_number(to, name, n);
	else
		json_put_text(to, name, NULL);
}

static void put_node(struct buf *to, const struct node_row *r)
{
	static const struct node_text nothing;
	const struct node_text *n = r->redis ? r->redis : &nothing;
	buf_puts(to, "{");
	json_put_text(to, "node", r->name);
	json_put_text(to, "state", node_row_state(r));
	json_put_text(to, "version", r->redis ? n->version : NULL);
	json_put_number(to, "seen_ms", node_row_seen_ms(r));
	put_count(to, "received", r->redis, n->count[NODE_RECEIVED]);
	put_count(to, "sent", r->redis, n->count[NODE_SENT]);
	put_count(to, "queued", node_row_counts(r, NODE_ACTIVE), node_rows_queued(n));
	put_count(to, "epoch", r->nats, r->nats ? (int64_t)r->nats->epoch : 0);
	json_put_text(to, "queue", r->nats ? r->nats->state : NULL);
	json_put_text(to, "by", r->nats ? r->nats->by : NULL);
	json_put_end(to, '}');
}

/* The first of them, and the sum of all. */
static void put_nodes(struct buf *to, const struct page_now *now)
{
	struct node_rows all;
	node_rows_init(&all, now->nodes, now->epochs);
	buf_puts(to, "\"cluster\":{");
	json_put_flag(to, "redis_away", all.redis_away);
	json_put_flag(to, "nats_away", all.nats_away);
	json_put_number(to, "nodes", all.n);
	put_count(to, "received", now->nodes, all.sum.count[NODE_RECEIVED]);
	put_count(to, "sent", now->nodes, all.sum.count[NODE_SENT]);
	put_count(to, "queued", now->nodes, node_rows_queued(&all.sum));
	buf_puts(to, "\"node\":[");
	for (int i = 0; i < all.n && i < PAGE_NODES; i++)
		put_node(to, &all.row[i]);
	json_put_end(to, ']');
	json_put_end(to, '}');
	node_rows_fini(&all);
}

static void put_conditions(struct buf *to)
{
	struct conditions c;
	conditions_take(&c);
	condition_print_array(to, &c);
	conditions_fini(&c);
}

/* --- who sends, and what is in the way */

static void put_login(struct buf *to, const struct limiter_login *l)
{
	static const char *const by[] = {[LIMIT_BY_LOGIN] = "login",
					 [LIMIT_BY_CLIENT] = "client",
					 [LIMIT_BY_SENDER] = "sender"};
	assert((size_t)l->by < sizeof by / sizeof *by);
	bool limited = l->limit[LIMIT_MESSAGES].events > 0;
	buf_puts(to, "{");
	json_put_text(to, "name", l->name);
	json_put_text(to, "by", by[l->by]);
	json_put_flag(to, "suspended", l->suspended);
	json_put_number(to, "messages", l->figures.today[LOGIN_MESSAGES]);
	json_put_number(to, "recipients", l->figures.today[LOGIN_RECIPIENTS]);
	json_put_number(to, "refused", l->figures.today[LOGIN_REFUSED]);
	json_put_number(to, "failures", l->figures.today[LOGIN_FAILURES]);
	json_put_number(to, "limit", limited ? l->limit[LIMIT_MESSAGES].events : 0);
	json_put_number(to, "limit_per_ms", limited ? l->limit[LIMIT_MESSAGES].per_ms : 0);
	json_put_number(to, "left", limited ? l->room[LIMIT_MESSAGES] : 0);
	json_put_end(to, '}');
}

static void put_logins(struct buf *to, const struct limiter_top *top)
{
	buf_puts(to, "\"logins\":{");
	json_put_number(to, "suspended", top ? top->suspended : 0);
	buf_puts(to, "\"kept\":[");
	for (int i = 0; top && i < top->nkept; i++)
		put_login(to, &top->kept[i]);
	json_put_end(to, ']');
	buf_puts(to, "\"most\":[");
	for (int i = 0; top && i < top->n; i++)
		put_login(to, &top->login[i]);
	json_put_end(to, ']');
	json_put_end(to, '}');
}

/* As mail has found them: none is tried for a page. */
static void put_filters(struct buf *to, const struct conf *conf)
{
	struct buf lines = {0};
	for (int i = 0; conf && i < conf->nmilter; i++) {
		struct milter_row row = {.conf = conf, .filter = &conf->milter[i]};
		milter_health_take(row.filter->title, &row.health);
		row.why = row.health.away ? row.health.why : NULL;
		milter_print_json(&lines, &row);
		milter_health_fini(&row.health);
	}
	json_put_lines(to, "filters", buf_cstr(&lines));
	buf_fini(&lines);
}

void page_print_now(struct buf *to, const struct page_now *now)
{
	buf_puts(to, "{");
	json_put_number(to, "at_ms", now->point.at_ms);
	json_put_text(to, "hostname", now->hostname);
	json_put_text(to, "version", SLUICE_VERSION);
	json_put_number(to, "uptime_ms", now->uptime_ms);
	json_put_flag(to, "accepting", now->accepting && !condition_stops_mail());
	put_conditions(to);
	json_put_number(to, "active_limit", now->active_limit);
	put_counts(to, &now->point);
	json_put_number(to, "in_doubt", metrics_sum(METRIC_in_doubt));
	put_gauges(to);
	put_commits(to);
	put_tls(to, now->snapshot);
	put_logins(to, now->logins);
	put_filters(to, now->conf);
	if (now->nodes || now->epochs)
		put_nodes(to, now);
	put_sites(to, now->snapshot);
	json_put_last(to, '}');
}

static void put_words(struct buf *to, const char *name, const struct verdict *v)
{
	struct buf words = {0};
	if (v)
		reply_words_put(&words, v, false);
	json_put_text(to, name, v ? buf_cstr(&words) : NULL);
	buf_fini(&words);
}

void page_print_message(struct buf *to, const struct spool_row *row)
{
	const struct envelope *e = row->envelope;
	const char *first = NULL;
	char id[IDENT_TEXT];
	for (uint32_t i = 0; i < e->nrcpt && !first; i++)
		if (!e->rcpt[i].done)
			first = e->rcpt[i].address;
	buf_puts(to, "{");
	json_put_text(to, "id", ident_text(e->id, id));
	json_put_text(to, "queue", spool_queue_name(row->queue));
	json_put_text(to, "from", e->sender);
	json_put_text(to, "to", first);
	json_put_number(to, "recipients", envelope_open(e));
	json_put_number(to, "arrived_ms", e->arrived_ms);
	json_put_number(to, "due_ms", row->queue == SPOOL_DEFERRED ? e->due_ms : 0);
	json_put_number(to, "tries", e->rounds);
	put_words(to, "says", envelope_latest_verdict(e));
	json_put_last(to, '}');
}
