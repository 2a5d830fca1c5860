/* SPDX-License-Identifier: ISC */
#include "dns/validator.h"

#include "base/address.h"
#include "base/log.h"
#include "base/magic.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "dns/query.h"
#include "dns/ub_loop.h"

#include <assert.h>
#include <ldns/ldns.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unbound-event.h>
#include <unbound.h>

/* A chain of keys is several questions, one after the other. */
enum { CHAIN_PATIENCE = 3, QUERY_MAGIC = 0xda11da7e };

struct validator {
	struct loop *loop;
	struct ub_loop *ub_loop;
	struct ub_ctx *ub;
	struct list asked;
	int64_t patience_ms;
};

struct option {
	const char *name, *value;
};

/* All of them together: sockets, since each question has one of its own, and memory in bytes. */
static const struct {
	const char *name;
	int64_t all;
} bounds[] = {
	{"outgoing-range:", 512},	{"num-queries-per-thread:", 1024},
	{"outgoing-num-tcp:", 32},	{"msg-cache-size:", 4 << 20},
	{"rrset-cache-size:", 4 << 20}, {"key-cache-size:", 4 << 20},
};

/* Settings that differ from the library's own choice. How slow a server was is soon forgotten: one that was away for a
 * minute would else be used only 15 s after it is back. */
static const struct option options[] = {
	{"module-config:", "validator iterator"}, {"do-not-query-localhost:", "no"},
	{"infra-keep-probing:", "yes"},		  {"infra-host-ttl:", "5"},
	{"trust-anchor-signaling:", "no"},
};

/* Zones that the library would answer for by itself, and which the organisation's servers may have. */
static const char *const not_local[] = {"test.", "invalid.", "home.arpa."};

static bool set_option(struct validator *v, const char *name, const char *value)
{
	int rc = ub_ctx_set_option(v->ub, name, value);
	if (rc != 0)
		log_event(LOG_LEVEL_ERROR, "dnssec", "reason", ub_strerror(rc), "option", name,
			  NULL);
	return rc == 0;
}

static bool set_number(struct validator *v, const char *name, int64_t number)
{
	char text[24];
	snprintf(text, sizeof text, "%lld", (long long)number);
	return set_option(v, name, text);
}

static bool set_options(struct validator *v, int of, const struct conf_dns *conf)
{
	bool good = true;
	for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++)
		good = good && set_number(v, bounds[i].name, bounds[i].all / of);
	for (size_t i = 0; i < sizeof options / sizeof *options; i++)
		good = good && set_option(v, options[i].name, options[i].value);
	for (int i = 0; i < conf->insecure_domains.n; i++)
		good = good && set_option(v, "domain-insecure:", conf->insecure_domains.item[i]);
	return good && set_number(v, "edns-buffer-size:", QUERY_EDNS_BYTES) &&
	       set_number(v, "cache-max-ttl:", conf->maximal_ttl / 1000) &&
	       set_number(v, "cache-max-negative-ttl:", conf->negative_ttl / 1000);
}

static bool add_server(struct validator *v, const union address *a, int64_t port)
{
	char where[ADDRESS_WHERE_MAX], text[ADDRESS_WHERE_MAX + 16];
	snprintf(text, sizeof text, "%s@%d", address_where(a, where), (int)port);
	return ub_ctx_set_fwd(v->ub, text) == 0;
}

/* The first that is not configuration makes the context from it. */
static bool drop_local_zones(struct validator *v)
{
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < sizeof not_local / sizeof *not_local; i++)
		rc = ub_ctx_zone_remove(v->ub, not_local[i]);
	if (rc != 0)
		log_event(LOG_LEVEL_ERROR, "dnssec", "reason", ub_strerror(rc), NULL);
	return rc == 0;
}

static bool set_up(struct validator *v, int of, const struct conf_dns *conf,
		   const struct trust_anchor *anchor, const union address *server, int nserver)
{
	bool good = true;
	v->ub = ub_ctx_create_ub_event(ub_loop_base(v->ub_loop));
	if (!v->ub)
		return false;
	ub_ctx_debugout(v->ub, NULL);
	for (int i = 0; good && i < anchor->n; i++)
		good = ub_ctx_add_ta(v->ub, anchor->record[i]) == 0;
	for (int i = 0; good && i < nserver; i++)
		good = add_server(v, &server[i], conf->port);
	return good && set_options(v, of, conf) && drop_local_zones(v);
}

struct validator *validator_new(struct loop *loop, int of, const struct conf_dns *conf,
				const struct trust_anchor *anchor, const union address *server,
				int nserver)
{
	assert(of > 0 && nserver > 0);
	struct validator *v = mem_zalloc(sizeof *v);
	v->loop = loop;
	v->ub_loop = ub_loop_new(loop);
	v->patience_ms = CHAIN_PATIENCE * conf->timeout * conf->tries;
	list_init(&v->asked);
	if (set_up(v, of, conf, anchor, server, nserver))
		return v;
	log_event(LOG_LEVEL_ERROR, "dnssec", "reason", "DNSSEC validation cannot be set up", NULL);
	validator_free(&v);
	return NULL;
}

static void give_reply(struct validator_query *q, const struct validator_reply *r)
{
	magic_clear(q);
	list_remove(&q->link);
	timer_stop(&q->validator->loop->timers, &q->limit);
	q->validated(q, r);
}

static void cancel_query(struct validator_query *q, enum channel_event event)
{
	ub_cancel(q->validator->ub, q->id);
	give_reply(q, &(struct validator_reply){.event = event});
}

void validator_free(struct validator **vp)
{
	struct validator *v = *vp;
	struct list *link;
	if (!v)
		return;
	while ((link = list_first(&v->asked)))
		cancel_query(list_entry(link, struct validator_query, link), CHANNEL_CLOSED);
	if (v->ub)
		ub_ctx_delete(v->ub);
	ub_loop_free(&v->ub_loop);
	free(v);
	*vp = NULL;
}

static void on_limit(void *owner)
{
	struct validator_query *q = owner;
	magic_check(q, QUERY_MAGIC);
	cancel_query(q, CHANNEL_TIMEOUT);
}

/* The verdict of libunbound on an answer, by its numbers. */
static enum resolve_security verdict_of(int secure)
{
	return secure == 2 ? RESOLVE_SECURE : secure == 1 ? RESOLVE_BOGUS : RESOLVE_INSECURE;
}

static void on_answer(void *arg, int rcode, void *bytes, int len, int secure, char *why,
		      int limited)
{
	(void)limited;
	struct validator_query *q = arg;
	magic_check(q, QUERY_MAGIC);
	struct validator_reply r = {.event = CHANNEL_FAILED, .security = verdict_of(secure)};
	if (r.security == RESOLVE_BOGUS || (rcode == LDNS_RCODE_NOERROR && bytes && len > 0)) {
		r.event = CHANNEL_REPLY;
		r.bytes = bytes;
		r.len = bytes && len > 0 ? (size_t)len : 0;
		r.why = why;
	}
	channel_count(r.event, bytes, r.len);
	give_reply(q, &r);
}

void validator_ask(struct validator *v, const char *name, enum answer_type type,
		   struct validator_query *q)
{
	assert(loop_is_ours(v->loop) && q->validated);
	q->validator = v;
	q->magic = QUERY_MAGIC;
	list_init(&q->link);
	list_append(&v->asked, &q->link);
	timer_init(&q->limit, on_limit, q);
	loop_timer_in(v->loop, &q->limit, v->patience_ms);
	metrics_add(METRIC_dns_queries, 1);
	int rc = ub_resolve_event(v->ub, *name ? name : ".", (int)type, LDNS_RR_CLASS_IN, q,
				  on_answer, &q->id);
	if (rc != 0)
		give_reply(q, &(struct validator_reply){.event = CHANNEL_FAILED});
}
