/* SPDX-License-Identifier: ISC */
#include "cmd/text/dest_print.h"

#include "base/conf_units.h"
#include "base/date.h"
#include "base/log.h"
#include "cmd/text/explain_print.h"
#include "cmd/text/json_put.h"
#include "cmd/text/moment.h"
#include "cmd/text/reply_words.h"
#include "qmgr/dest/site.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void put_seconds(struct buf *to, int64_t ms)
{
	buf_printf(to, "%" PRId64 ".%" PRId64 "s", ms / 1000, ms % 1000 / 100);
}

static void put_state(struct buf *to, const char *state, int64_t for_ms)
{
	buf_puts(to, state);
	if (for_ms > 0) {
		buf_puts(to, " for ");
		put_seconds(to, for_ms);
	}
}

static void put_rate(struct buf *to, const struct dest_site *s)
{
	const struct conf_rate rate = {s->rate_events, s->rate_per_ms};
	if (rate.events > 0) {
		buf_puts(to, " rate=");
		conf_rate_print(&rate, to);
	}
	if (s->delay_ms > 0) {
		buf_puts(to, " delay=");
		conf_amount_print(CONF_duration, s->delay_ms, to);
	}
}

/* "20/s, since 10:42, because: 421 4.7.28 ..." */
static void put_pace(struct buf *to, const struct dest_site *s)
{
	explain_print_pace(to, s->pace, s->paced_ms, false);
	if (s->shared)
		buf_printf(to, ", of all that is %s's", s->provider);
	if (s->refused) {
		buf_puts(to, ", because: ");
		reply_words_put(to, s->refused, false);
	}
}

/* --- a line each */

enum {
	ALIGNED_MAX = 48, /* what is longer pushes its own line only */
	DOMAINS_SHOWN = 5,
	DOMAINS_FULL = 20,
};

static const char transport_is[] = "transport=";

struct widths {
	int site, transport, state, host, host_state;
};

static void widen_column(int *width, size_t len)
{
	if (len <= ALIGNED_MAX && (int)len > *width)
		*width = (int)len;
}

/* The state with how long it holds, and its length. */
static void put_state_padded(struct buf *to, const char *state, int64_t for_ms, int width)
{
	struct buf text = {0};
	put_state(&text, state, for_ms);
	buf_printf(to, "%-*s", width, buf_cstr(&text));
	buf_fini(&text);
}

static size_t state_length(const char *state, int64_t for_ms)
{
	struct buf text = {0};
	put_state(&text, state, for_ms);
	size_t len = buf_len(&text);
	buf_fini(&text);
	return len;
}

static void measure_host(struct widths *w, const struct dest_host *h)
{
	widen_column(&w->host, strlen(h->peer));
	widen_column(&w->host_state, state_length(h->state, h->retry_in_ms));
}

static void measure_columns(const struct dest_command *c, struct widths *w)
{
	for (int i = 0; i < c->nsite; i++) {
		const struct dest_site *s = &c->site[i];
		widen_column(&w->site, strlen(s->name));
		widen_column(&w->transport, strlen(transport_is) + strlen(s->transport));
		widen_column(&w->state, state_length(s->state, s->dead_in_ms));
		for (int h = 0; h < s->nhost; h++)
			measure_host(w, &s->host[h]);
	}
	for (int i = 0; i < c->nhost; i++)
		measure_host(w, &c->host[i]);
}

/* Without the blanks that the next column would have needed. */
static void end_line(struct buf *to)
{
	while (buf_len(to) > 0 && buf_data(to)[buf_len(to) - 1] == ' ')
		buf_shorten(to, 1);
	buf_puts(to, "\n");
}

static void put_host_line(struct buf *to, const struct dest_host *h, const struct widths *w)
{
	buf_printf(to, "  %-*s ", w->host, h->peer);
	put_state_padded(to, h->state, h->retry_in_ms, w->host_state);
	buf_printf(to, " preference=%-3" PRIu32 " connections=%-3d idle=%-3d failures=%d",
		   h->preference, h->connections, h->idle, h->failures);
	if (h->login)
		buf_printf(to, " login=%s", h->login);
	if (h->unanswered > 0)
		buf_printf(to, " unanswered=%d", h->unanswered);
	if (h->limit > 0)
		buf_printf(to, " limit=%d", h->limit);
	if (h->depth > 1 || h->mode_in_ms > 0)
		buf_printf(to, " depth=%d", h->depth);
	if (h->mode_in_ms > 0)
		buf_printf(to, " mode=\"%s\"", h->mode);
	if (h->messages_most > 0)
		buf_printf(to, " messages=%d", h->messages_most);
	if (h->recipients_most > 0)
		buf_printf(to, " recipients=%" PRIu32, h->recipients_most);
	if (h->doubts > 0)
		buf_printf(to, " in_doubt=%d", h->doubts);
	if (h->why) {
		buf_puts(to, " (");
		reply_words_put(to, h->why, false);
		buf_puts(to, ")");
	}
	end_line(to);
}

/* domains=a.test,b.test,...(12) */
static void put_domains(struct buf *to, const struct dest_site *s)
{
	int all = s->ndomain + s->more_domains;
	for (int i = 0; i < s->ndomain && i < DOMAINS_SHOWN; i++)
		buf_printf(to, "%s%s", i > 0 ? "," : " domains=", s->domain[i]);
	if (all > DOMAINS_SHOWN)
		buf_printf(to, ",...(%d)", all);
}

/* Its hosts have refused that; "30m". */
static void put_shut(struct buf *to, const struct dest_site *s)
{
	if (s->shut_in_ms > 0) {
		buf_puts(to, ", refused, tried again in ");
		moment_put_span(to, s->shut_in_ms);
	}
}

static void put_site_line(struct buf *to, const struct dest_site *s, const struct widths *w)
{
	int rest = w->transport - (int)strlen(transport_is);
	buf_printf(to, "%-*s %s%-*s ", w->site, s->name, transport_is, rest, s->transport);
	put_state_padded(to, s->state, s->dead_in_ms, w->state);
	buf_printf(to, " window=%-3d busy=%-3d idle=%-3d connecting=%-3d waiting=%-5" PRId64,
		   s->window, s->busy, s->idle, s->connecting, s->waiting);
	if (s->deferred > 0)
		buf_printf(to, " deferred=%-5" PRId64 " parked=%-5" PRId64, s->deferred, s->parked);
	put_rate(to, s);
	if (s->provider)
		buf_printf(to, " provider=%s", s->provider);
	if (s->shut_in_ms > 0) {
		buf_printf(to, " source=\"%s", s->source);
		put_shut(to, s);
		buf_puts(to, "\"");
	}
	put_domains(to, s);
	if (s->pace > 0) {
		buf_puts(to, " pace=\"");
		put_pace(to, s);
		buf_puts(to, "\"");
	} else if (s->last) {
		buf_puts(to, " (");
		reply_words_put(to, s->last, false);
		buf_puts(to, ")");
	}
	end_line(to);
}

static int by_badness(const void *x, const void *y)
{
	const struct dest_site *a = x, *b = y;
	int bad_a = site_badness(a->state), bad_b = site_badness(b->state);
	int64_t wait_a = a->waiting + a->deferred, wait_b = b->waiting + b->deferred;
	if (bad_a != bad_b)
		return bad_b - bad_a;
	if (wait_a != wait_b)
		return wait_a < wait_b ? 1 : -1;
	int way = strcmp(a->name, b->name);
	return way ? way : strcmp(a->key, b->key);
}

void dest_print_sort(struct dest_command *c)
{
	if (c->nsite > 0)
		qsort(c->site, (size_t)c->nsite, sizeof *c->site, by_badness);
}

static void put_until(struct buf *to, int64_t until_ms)
{
	if (until_ms == 0)
		return;
	buf_puts(to, " until ");
	moment_put(to, until_ms, false);
}

static void put_suspended(struct buf *to, const struct dest_suspended *n)
{
	buf_printf(to, "suspended: %s%s", n->provider ? "provider " : "", n->name);
	put_until(to, n->until_ms);
	buf_puts(to, "\n");
}

static void put_heading(struct buf *to, const struct widths *w)
{
	buf_printf(to, "%-*s %-*s %-*s CONNECTIONS, MAIL, (LAST FAILURE)\n", w->site, "SITE",
		   w->transport, "TRANSPORT", w->state, "STATE");
}

void dest_print_list(struct buf *to, const struct dest_command *c)
{
	struct widths w = {.site = (int)strlen("SITE")};
	measure_columns(c, &w);
	if (c->nsite > 0)
		put_heading(to, &w);
	for (int i = 0; i < c->nsite; i++) {
		put_site_line(to, &c->site[i], &w);
		for (int h = 0; h < c->site[i].nhost; h++)
			put_host_line(to, &c->site[i].host[h], &w);
	}
	if (c->nhost > 0 && !c->hosts)
		buf_puts(to, "hosts that no site has now\n");
	for (int i = 0; i < c->nhost; i++)
		put_host_line(to, &c->host[i], &w);
	for (int i = 0; i < c->nsuspended; i++)
		put_suspended(to, &c->suspended[i]);
}

void dest_print_tabs(struct buf *to, const struct dest_command *c)
{
	for (int i = 0; i < c->nsite; i++) {
		const struct dest_site *s = &c->site[i];
		buf_printf(to,
			   "%s\t%s\t%s\t%" PRId64 ".%03d\t%d\t%d\t%d\t%" PRId64 "\t%" PRId64
			   "\t%" PRId64 "\t",
			   s->name, s->transport, s->state, s->dead_in_ms / 1000,
			   (int)(s->dead_in_ms % 1000), s->window, s->connections, s->busy,
			   s->waiting, s->deferred, s->verdicts);
		if (s->last)
			reply_words_put(to, s->last, false);
		buf_printf(to, "\t%s\n", s->key);
	}
}

/* --- in full */

static void put_when(struct buf *to, const struct verdict *v)
{
	moment_put(to, v->when_ms, false);
	buf_puts(to, ": ");
	reply_words_put(to, v, false);
	buf_puts(to, "\n");
}

/* The words for how long an order holds, if it has an end. */
static void put_spell(struct buf *to, const char *what, int64_t for_ms)
{
	if (for_ms == 0)
		return;
	buf_puts(to, what);
	put_seconds(to, for_ms);
	buf_puts(to, "\n");
}

static void put_host_full(struct buf *to, const struct dest_host *h)
{
	buf_printf(to, "host:        %s, preference %" PRIu32 "\nstate:       ", h->peer,
		   h->preference);
	put_state(to, h->state, h->retry_in_ms);
	buf_printf(to,
		   "\nconnections: %d: %d ready, %d idle, %d unanswered\nfailures:    %d in a row\n"
		   "in doubt:    %d\nlast opened: ",
		   h->connections, h->ready, h->idle, h->unanswered, h->failures, h->doubts);
	if (h->opened_ago_ms < 0) {
		buf_puts(to, "never");
	} else {
		put_seconds(to, h->opened_ago_ms);
		buf_puts(to, " ago");
	}
	buf_printf(to, "\npipeline:    %d deep, ", h->depth);
	put_state(to, h->mode, h->mode_in_ms);
	buf_puts(to, "\n");
	if (h->messages_most > 0) {
		buf_printf(to, "messages:    %d on one connection, for ", h->messages_most);
		put_seconds(to, h->messages_in_ms);
		buf_puts(to, "\n");
	}
	if (h->recipients_most > 0) {
		buf_printf(to, "recipients:  %" PRIu32 " of one message at once, for ",
			   h->recipients_most);
		put_seconds(to, h->recipients_in_ms);
		buf_puts(to, "\n");
	}
	if (h->limit > 0) {
		buf_printf(to, "limit:       takes %d connections", h->limit);
		put_spell(to, ", one more is tried in ", h->limit_in_ms);
		buf_puts(to, h->limit_in_ms > 0 ? "" : "\n");
	}
	if (h->round_trip_us > 0)
		buf_printf(to, "speed:       round trip %.1f ms, %.1f ms a message\n",
			   (double)h->round_trip_us / 1000, (double)h->service_us / 1000);
	put_spell(to, "slow:        to connect, comes after others for ", h->slow_in_ms);
	put_spell(to, "tls:         broken, not tried for ", h->plain_in_ms);
	put_spell(to, "tls:         classical groups, as it chokes on a large ClientHello, for ",
		  h->classical_in_ms);
	if (h->why) {
		buf_puts(to, "last failure: ");
		put_when(to, h->why);
	}
}

static void put_domains_full(struct buf *to, const struct dest_site *s)
{
	int shown = s->ndomain < DOMAINS_FULL ? s->ndomain : DOMAINS_FULL;
	int more = s->ndomain + s->more_domains - shown;
	for (int i = 0; i < shown; i++)
		buf_printf(to, "%s%s", i > 0 ? ", " : "domains:     ", s->domain[i]);
	if (more > 0)
		buf_printf(to, " and %d more", more);
	buf_puts(to, shown > 0 ? "\n" : "");
}

static void put_site_full(struct buf *to, const struct dest_site *s)
{
	buf_printf(to, "site:        %s\ntransport:   %s\n", s->name, s->transport);
	if (s->provider)
		buf_printf(to, "provider:    %s\n", s->provider);
	if (s->source) {
		buf_printf(to, "source:      %s", s->source);
		put_shut(to, s);
		buf_puts(to, "\n");
	}
	put_domains_full(to, s);
	buf_puts(to, "state:       ");
	put_state(to, s->state, s->dead_in_ms);
	buf_printf(to, "\nwindow:      %d of ", s->window);
	if (s->limit > 0)
		buf_printf(to, "%d", s->limit);
	else
		buf_puts(to, "any number");
	buf_printf(to,
		   "\nconnections: %d: %d busy, %d idle, %d connecting\n"
		   "waiting:     %" PRId64,
		   s->connections, s->busy, s->idle, s->connecting, s->waiting);
	put_rate(to, s);
	buf_printf(to, "\ndeferred:    %" PRId64 ", of which %" PRId64 " until it lives again\n",
		   s->deferred, s->parked);
	if (s->pace > 0) {
		buf_puts(to, "pace:        ");
		put_pace(to, s);
		buf_puts(to, "\n");
	}
	if (s->last) {
		buf_puts(to, "last failure: ");
		put_when(to, s->last);
	}
	for (int i = 0; i < s->nhost; i++)
		put_host_full(to, &s->host[i]);
}

void dest_print_full(struct buf *to, const struct dest_command *c)
{
	for (int i = 0; i < c->nsite; i++) {
		put_site_full(to, &c->site[i]);
		buf_puts(to, i + 1 < c->nsite ? "\n" : "");
	}
	for (int i = 0; i < c->nhost; i++)
		put_host_full(to, &c->host[i]);
}

static void json_verdict(struct buf *to, const struct verdict *v)
{
	if (!v) {
		json_put_text(to, "last_failure", NULL);
		return;
	}
	buf_puts(to, "\"last_failure\":{");
	json_put_time(to, "when", v->when_ms);
	json_put_code(to, v->code);
	json_put_said(to, "dsn", v->dsn);
	json_put_said(to, "host", v->host);
	json_put_text(to, "reason", v->text);
	json_put_end(to, '}');
}

static void json_host(struct buf *to, const struct dest_host *h)
{
	buf_puts(to, "{");
	json_put_text(to, "host", h->name);
	json_put_text(to, "address", h->address);
	if (h->login)
		json_put_text(to, "login", h->login);
	json_put_number(to, "port", h->port);
	json_put_number(to, "preference", h->preference);
	json_put_text(to, "state", h->state);
	buf_printf(to,
		   "\"connections\":%d,\"ready\":%d,\"idle\":%d,\"unanswered\":%d"
		   ",\"failures\":%d,\"in_doubt\":%d,\"depth\":%d,",
		   h->connections, h->ready, h->idle, h->unanswered, h->failures, h->doubts,
		   h->depth);
	json_put_text(to, "mode", h->mode);
	json_put_seconds(to, "retry_in", h->retry_in_ms);
	json_put_seconds(to, "mode_for", h->mode_in_ms);
	buf_printf(to,
		   "\"messages_most\":%d,\"recipients_most\":%" PRIu32
		   ",\"connections_most\":%d,\"round_trip\":%.6f,\"service\":%.6f,",
		   h->messages_most, h->recipients_most, h->limit, (double)h->round_trip_us / 1e6,
		   (double)h->service_us / 1e6);
	json_put_seconds(to, "slow_for", h->slow_in_ms);
	json_put_seconds(to, "tls_broken_for", h->plain_in_ms);
	json_put_seconds(to, "classical_for", h->classical_in_ms);
	if (h->opened_ago_ms >= 0)
		json_put_seconds(to, "opened_ago", h->opened_ago_ms);
	else
		json_put_text(to, "opened_ago", NULL);
	json_verdict(to, h->why);
	json_put_last(to, '}');
}

static void json_pace(struct buf *to, const struct dest_site *s)
{
	if (s->pace <= 0) {
		json_put_text(to, "pace", NULL);
		return;
	}
	buf_printf(to, "\"pace\":{\"rate\":%.3f,\"since\":%.3f,", s->pace,
		   (double)(s->paced_ms + date_ahead_ms()) / 1000);
	json_put_flag(to, "of_provider", s->shared);
	json_put_text(to, "reason", s->refused ? s->refused->text : "");
	json_put_end(to, '}');
}

static void json_domains(struct buf *to, const struct dest_site *s)
{
	buf_puts(to, "\"domains\":[");
	for (int i = 0; i < s->ndomain; i++) {
		buf_puts(to, i > 0 ? "," : "");
		log_json_string(to, s->domain[i]);
	}
	buf_printf(to, "],\"more_domains\":%d,", s->more_domains);
}

/* The last hour, each step as the counts say. */
static void json_past(struct buf *to, const struct site_past *p)
{
	if (!p)
		return;
	buf_printf(to,
		   "\"past\":{\"step\":%.3f,\"last_began\":%.3f,"
		   "\"counts\":[\"sent\",\"deferred\",\"bounced\",\"unreached\"],\"steps\":[",
		   (double)SITE_HOUR_STEP_MS / 1000, (double)p->ago_ms / 1000);
	for (int i = 0; i < p->n; i++) {
		buf_puts(to, i > 0 ? ",[" : "[");
		for (int k = 0; k < SITE_HOUR_COUNTS; k++)
			buf_printf(to, "%s%" PRIu32, k > 0 ? "," : "", p->step[i][k]);
		buf_puts(to, "]");
	}
	buf_puts(to, "]},");
}

static void json_site(struct buf *to, const struct dest_site *s)
{
	buf_puts(to, "{");
	json_put_text(to, "site", s->name);
	json_put_text(to, "transport", s->transport);
	json_put_text(to, "key", s->key);
	if (s->provider)
		json_put_text(to, "provider", s->provider);
	if (s->source) {
		json_put_text(to, "source", s->source);
		json_put_seconds(to, "refused_in", s->shut_in_ms);
	}
	json_put_text(to, "state", s->state);
	buf_printf(to,
		   "\"window\":%d,\"limit\":%d,\"connections\":%d,\"connecting\":%d,"
		   "\"busy\":%d,\"idle\":%d,\"waiting\":%" PRId64 ",\"deferred\":%" PRId64
		   ",\"parked\":%" PRId64 ",\"replies\":%" PRId64 ",\"unreached\":%" PRId64
		   ",\"rate_events\":%" PRId64 ",",
		   s->window, s->limit, s->connections, s->connecting, s->busy, s->idle, s->waiting,
		   s->deferred, s->parked, s->verdicts, s->unreached, s->rate_events);
	json_put_seconds(to, "rate_per", s->rate_per_ms);
	json_put_seconds(to, "rate_delay", s->delay_ms);
	json_put_seconds(to, "dead_for", s->dead_in_ms);
	json_pace(to, s);
	json_verdict(to, s->last);
	json_domains(to, s);
	json_past(to, s->past);
	buf_puts(to, "\"hosts\":[");
	for (int i = 0; i < s->nhost; i++) {
		json_host(to, &s->host[i]);
		buf_puts(to, ",");
	}
	json_put_end(to, ']');
	json_put_line(to);
}

static void json_suspended(struct buf *to, const struct dest_suspended *n)
{
	buf_puts(to, "{");
	json_put_text(to, "suspended", n->name);
	json_put_flag(to, "provider", n->provider);
	json_put_time(to, "until", n->until_ms);
	json_put_line(to);
}

void dest_print_json(struct buf *to, const struct dest_command *c)
{
	for (int i = 0; i < c->nsite; i++)
		json_site(to, &c->site[i]);
	for (int i = 0; i < c->nhost; i++) {
		json_host(to, &c->host[i]);
		buf_puts(to, "\n");
	}
	for (int i = 0; i < c->nsuspended; i++)
		json_suspended(to, &c->suspended[i]);
}

void dest_print_done(struct buf *to, const struct dest_command *c)
{
	buf_printf(to, "%s%s %s", c->provider ? "provider " : "",
		   c->provider ? c->provider : c->name, order_done(c->op));
	put_until(to, c->op == ORDER_SUSPEND ? c->until_ms : 0);
	buf_puts(to, "\n");
}
