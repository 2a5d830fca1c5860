/* SPDX-License-Identifier: ISC */
#include "cmd/local/route_trace.h"

#include "base/conf_value.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/tables.h"
#include "dns/dns.h"
#include "smtpd/addressing.h"
#include "smtpd/alias.h"
#include "smtpd/flow_name.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ANSWER_MS = 60000 };

/* As nexthop_tls() and nexthop_tls_of_hop() have it, with who said so. */
static void find_policy(const struct conf *c, const struct route_way *w, struct route_hop *h)
{
	const struct route_demand *all[] = {&w->demand[0], &w->demand[1], &w->demand[2], &h->row};
	h->row.setting = "tls_policy";
	h->row.policy = tls_policy_row(c->tables, h->name, h->bracketed, h->port, &h->row.origin);
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		const char *held = h->held ? h->held->policy : NULL;
		if (all[i]->policy && tls_policy_strictest(held, all[i]->policy) != held)
			h->held = all[i];
	}
	h->tls = tls_policy_of_hop(h->held->policy, h->name);
	h->dane = strncmp(h->text, "unix:", 5) == 0 ? TLS_DANE_IGNORED
						    : tls_policy_dane(h->held->policy, c->tls.dane);
}

static void find_demands(const struct conf *c, struct route_way *w, const struct route *route)
{
	w->demand[0] = (struct route_demand){mem_strdup(route->by->tls),
					     "transport",
					     {route->by->line > 0 ? c->file : "", route->by->line}};
	w->demand[1] = (struct route_demand){mem_strdup(route->tls), "route", route->origin};
	w->demand[2].setting = "tls_policy";
	w->demand[2].policy = tls_policy_row(c->tables, mailaddr_domain(w->recipient), false,
					     (int)route->by->port, &w->demand[2].origin);
}

static void add_hop(struct route_trace *t, struct route_way *w, const char *text, bool fallback)
{
	struct conf_relay r = {.port = 0};
	w->hop = mem_realloc(w->hop, (size_t)(w->nhop + 1) * sizeof *w->hop);
	struct route_hop *h = &w->hop[w->nhop++];
	*h = (struct route_hop){.text = mem_strdup(text), .fallback = fallback};
	if (conf_relay_read(text, &r)) {
		h->port = r.port;
		h->weight = r.weight;
		h->bracketed = r.bracketed;
	}
	if (strncmp(text, "unix:", 5) != 0 && h->port == 0)
		h->port = (int)w->by->port;
	h->name = r.host ? r.host : mem_strdup(text);
	find_policy(t->conf, w, h);
}

/* Who is named by an alias, or gets a copy, is not judged. */
static bool is_unlisted(const struct route_trace *t, const struct route *route,
			const struct recipient *rcpt)
{
	struct conf_list servers = {0};
	if (!route->recipients || t->aliased || rcpt->notify == NOTIFY_NEVER)
		return false;
	tables_servers(t->conf->tables, TABLE_RECIPIENTS, route->recipients, &servers);
	bool may_be = servers.n > 0; /* nobody is asked here */
	conf_list_free(&servers);
	return !may_be &&
	       !tables_list(t->conf->tables, TABLE_RECIPIENTS, route->recipients, rcpt->address);
}

static void add_way(struct route_trace *t, struct route_table *routes, const struct recipient *rcpt)
{
	const char *sender = t->envelope->sender;
	const struct conf_flow *flow = conf_flow_find(t->conf, t->flow);
	const struct conf_transport *of_route = route_find(routes, sender, rcpt->address)->by;
	const struct route found = *route_find_of_flow(routes, flow, sender, rcpt->address);
	const struct route *route = &found;
	struct route_way *w = &t->way[t->nway++];
	*w = (struct route_way){.recipient = rcpt->address,
				.copy = rcpt->notify == NOTIFY_NEVER,
				.unlisted = is_unlisted(t, route, rcpt),
				.action = route->action,
				.by = route->by,
				.named = route->named,
				.of_flow = route->by != of_route,
				.dsn = mem_strdup(route->dsn),
				.text = mem_strdup(route->text),
				.setting = route->setting,
				.origin = route->origin};
	if (w->action != ROUTE_DELIVER)
		return;
	find_demands(t->conf, w, route);
	if (route->relay->n == 0)
		add_hop(t, w, mailaddr_domain(rcpt->address), false);
	for (int i = 0; i < route->relay->n; i++)
		add_hop(t, w, route->relay->item[i], false);
	for (int i = 0; i < route->by->fallback_relay.n; i++)
		add_hop(t, w, route->by->fallback_relay.item[i], true);
}

static void find_ways(struct route_trace *t)
{
	struct envelope *e = t->envelope;
	struct route_table *routes = route_table_new(t->conf);
	t->way = mem_zalloc((e->nrcpt + 1) * sizeof *t->way);
	for (uint32_t i = 0; i < e->nrcpt; i++)
		add_way(t, routes, &e->rcpt[i]);
	route_table_free(&routes);
}

static void find_recipients(struct route_trace *t, const char *address)
{
	struct conf_list members = {0};
	bool dropped = t->access.action == ACCESS_REFUSE || t->access.action == ACCESS_DISCARD;
	if (t->refused != RESPONSE_OK || dropped)
		return;
	t->aliased = alias_find(t->conf, NULL, rewrite_result(&t->recipient, address), &members,
				&t->alias_at) == ALIAS_IS_ONE;
	conf_list_free(&members);
	t->refused = addressing_recipient(t->conf, NULL, t->envelope, address, 0, NULL, NULL);
	if (t->refused == RESPONSE_OK)
		addressing_copies(t->conf, NULL, t->envelope);
}

static char *find_flow(const struct route_trace *t)
{
	const struct flow_facts facts = {.sender = t->envelope->sender};
	bool said = t->accessed && t->access.action == ACCESS_FLOW;
	return said ? mem_strdup(t->access.text) : flow_name(t->conf, &facts);
}

struct route_trace *route_trace_new(struct conf *conf, const char *sender, const char *flow,
				    const char *address)
{
	struct route_trace *t = mem_zalloc(sizeof *t);
	t->conf = conf_ref(conf);
	t->envelope = envelope_new();
	if (!rewrite_sender(conf, sender, &t->sender) ||
	    !rewrite_recipient(conf, address, &t->recipient))
		t->refused = RESPONSE_REWRITE_LOOP;
	else
		t->refused = RESPONSE_OK;
	t->envelope->sender = mem_strdup(rewrite_result(&t->sender, sender));
	t->accessed = addressing_access(conf, address, &t->access, &t->access_at);
	t->flow = flow ? mem_strdup(flow) : find_flow(t);
	find_recipients(t, address);
	find_ways(t);
	return t;
}

/* A next hop that is asked about, and the route of the first that has it. */
struct seeking {
	const struct conf *conf;
	struct conf_relay hop;
	enum table_role role; /* of the rows that are looked at */
	struct route route;   /* by: NULL until it is found */
};

/* However it is spelt, and whatever weight it has. */
static bool has_hop(const struct conf_list *relays, const struct conf_relay *hop)
{
	bool has = false;
	for (int i = 0; i < relays->n && !has; i++) {
		struct conf_relay r;
		if (!conf_relay_read(relays->item[i], &r))
			continue;
		has = strcasecmp(r.host, hop->host) == 0 && r.port == hop->port &&
		      r.bracketed == hop->bracketed;
		free(r.host);
	}
	return has;
}

static void seek_in_sections(struct seeking *s)
{
	for (int i = 0; i < s->conf->nroute && !s->route.by; i++) {
		const struct conf_route *section = &s->conf->route[i];
		if (has_hop(&section->relay, &s->hop))
			s->route = (struct route){.by = section->by,
						  .tls = *section->tls ? section->tls : NULL,
						  .setting = "route",
						  .origin = {s->conf->file, section->line}};
	}
}

static void look_at_row(void *context, const char *key, const char *value)
{
	struct seeking *s = context;
	struct route_value v;
	struct buf why = {0};
	if (s->route.by)
		return;
	if (!route_value_parse(value, &v, &why) && has_hop(&v.relay, &s->hop)) {
		s->route = (struct route){.by = route_transport(s->conf, v.transport),
					  .setting = tables_setting(s->role)};
		free(tables_get(s->conf->tables, s->role, key, &s->route.origin));
	}
	route_value_fini(&v);
	buf_fini(&why);
}

static void seek_in_tables(struct seeking *s)
{
	static const enum table_role roles[] = {TABLE_ROUTES, TABLE_SENDER_ROUTES};
	for (size_t i = 0; i < sizeof roles / sizeof *roles && !s->route.by; i++) {
		s->role = roles[i];
		tables_each(s->conf->tables, s->role, look_at_row, s);
	}
}

static void seek_in_transports(struct seeking *s)
{
	for (int i = 0; i < s->conf->ntransport && !s->route.by; i++) {
		const struct conf_transport *t = &s->conf->transport[i];
		if (has_hop(&t->fallback_relay, &s->hop))
			s->route = (struct route){.by = t,
						  .setting = "transport",
						  .origin = {s->conf->file, t->line}};
	}
}

static struct route route_that_has(const struct conf *c, const struct conf_relay *hop)
{
	struct seeking s = {.conf = c, .hop = *hop};
	seek_in_sections(&s);
	if (!s.route.by && c->tables)
		seek_in_tables(&s);
	seek_in_transports(&s);
	if (!s.route.by)
		s.route = (struct route){
			.by = &c->transport[0], .setting = "route", .origin = {c->file, 0}};
	return s.route;
}

struct route_trace *route_trace_hop(struct conf *conf, const char *hop)
{
	struct conf_relay r;
	if (!conf_relay_read(hop, &r))
		return NULL;
	const struct route route = route_that_has(conf, &r);
	free(r.host);
	struct route_trace *t = mem_zalloc(sizeof *t);
	t->conf = conf_ref(conf);
	t->refused = RESPONSE_OK;
	t->nway = 1;
	t->way = mem_zalloc(sizeof *t->way);
	*t->way = (struct route_way){.recipient = "",
				     .action = ROUTE_DELIVER,
				     .by = route.by,
				     .named = true,
				     .setting = route.setting,
				     .origin = route.origin};
	find_demands(conf, t->way, &route);
	add_hop(t, t->way, hop, false);
	return t;
}

/* All that was asked, and how much of it has no answer yet. */
struct asking {
	struct loop *loop;
	struct dns *dns;
	struct timer limit;
	int open;
	bool dane;
};

static void take_answer(void *owner, struct note *note)
{
	struct asking *a = owner;
	struct resolve *r = (struct resolve *)note;
	struct route_hop *h = r->owner;
	assert(!h->answer);
	h->answer = r;
	assert(a->open > 0);
	if (--a->open == 0)
		ev_break(a->loop->ev, EVBREAK_ALL);
}

static void too_long(void *owner)
{
	struct asking *a = owner;
	ev_break(a->loop->ev, EVBREAK_ALL);
}

static void ask_hop(struct asking *a, struct route_hop *h, bool by_domain)
{
	assert(!h->answer);
	struct conf_relay r = {.port = 0};
	struct resolve *q;
	if (by_domain && h->text[0] == '[') {
		char *literal = mem_strndup(h->text + 1, strcspn(h->text + 1, "]"));
		q = resolve_new(RESOLVE_HOST, literal, a->loop, h);
		free(literal);
	} else if (by_domain || !conf_relay_read(h->text, &r)) {
		q = resolve_new(RESOLVE_MX, h->text, a->loop, h);
	} else {
		q = resolve_new(r.bracketed ? RESOLVE_HOST : RESOLVE_MX, r.host, a->loop, h);
	}
	free(r.host);
	q->trusted = !by_domain;
	q->dane = a->dane && h->dane != TLS_DANE_IGNORED;
	q->port = h->port;
	a->open++;
	loop_post(dns_loop(a->dns), &q->note);
}

static void ask_way(struct asking *a, struct route_way *w, bool by_domain)
{
	for (int i = 0; i < w->nhop; i++)
		ask_hop(a, &w->hop[i], by_domain && i == 0);
}

/* Is the next hop the recipient's domain? */
static bool is_by_domain(const struct route_way *w)
{
	return w->nhop > 0 && !w->hop[0].fallback &&
	       strcmp(w->hop[0].text, mailaddr_domain(w->recipient)) == 0;
}

bool route_trace_by_domain(const struct route_way *w, const struct route_hop *h)
{
	return h == w->hop && is_by_domain(w) && h->text[0] != '[' &&
	       w->by->protocol == TRANSPORT_PROTOCOL_SMTP;
}

static void free_hops(struct route_way *w)
{
	for (int i = 0; i < w->nhop; i++) {
		resolve_free(&w->hop[i].answer);
		free(w->hop[i].text);
		free(w->hop[i].name);
		free(w->hop[i].tls);
		free(w->hop[i].row.policy);
	}
	mem_free(&w->hop);
	w->nhop = 0;
}

static void free_demands(struct route_way *w)
{
	for (size_t i = 0; i < sizeof w->demand / sizeof *w->demand; i++)
		free(w->demand[i].policy);
}

/* As the router has it: the transport of its provider, and the same questions with the port and the policy of that. */
static bool go_elsewhere(struct route_trace *t, struct route_way *w)
{
	const struct resolve *r = w->nhop > 0 ? w->hop[0].answer : NULL;
	const struct conf_provider *p =
		r && r->nhost > 0 && !w->named ? conf_provider_of_answer(t->conf, r) : NULL;
	if (!p || !p->by || p->by == w->by)
		return false;
	w->provider = p;
	w->by = p->by;
	w->named = true;
	char *tls = mem_strdup(w->demand[1].policy);
	struct route route = {.by = p->by, .tls = tls, .origin = w->demand[1].origin};
	free_hops(w);
	free_demands(w);
	find_demands(t->conf, w, &route);
	free(tls);
	add_hop(t, w, mailaddr_domain(w->recipient), false);
	for (int i = 0; i < w->by->fallback_relay.n; i++)
		add_hop(t, w, w->by->fallback_relay.item[i], true);
	return true;
}

static void wait_for_answers(struct asking *a)
{
	loop_timer_in(a->loop, &a->limit, ANSWER_MS);
	if (a->open > 0)
		ev_run(a->loop->ev, 0);
	timer_stop(&a->loop->timers, &a->limit);
}

void route_trace_ask(struct route_trace *t, bool dane)
{
	struct asking a = {.dns = dns_new(t->conf), .dane = dane};
	a.loop = loop_new("route", take_answer, NULL, &a);
	timer_init(&a.limit, too_long, &a);
	dns_start(a.dns);
	for (uint32_t i = 0; i < t->nway; i++)
		ask_way(&a, &t->way[i], is_by_domain(&t->way[i]));
	wait_for_answers(&a);
	const bool all = a.open == 0; /* before there are others */
	for (uint32_t i = 0; all && i < t->nway; i++)
		if (go_elsewhere(t, &t->way[i]))
			ask_way(&a, &t->way[i], true);
	wait_for_answers(&a);
	dns_stop(a.dns);
	dns_free(&a.dns);
	loop_free(&a.loop);
}

static void free_way(struct route_way *w)
{
	free_hops(w);
	free_demands(w);
	free(w->dsn);
	free(w->text);
}

void route_trace_free(struct route_trace **tp)
{
	struct route_trace *t = mem_take(tp);
	if (!t)
		return;
	for (uint32_t i = 0; i < t->nway; i++)
		free_way(&t->way[i]);
	free(t->way);
	rewrite_fini(&t->sender);
	rewrite_fini(&t->recipient);
	access_value_fini(&t->access);
	free(t->flow);
	envelope_free(&t->envelope);
	conf_unref(t->conf);
	free(t);
}
