/* SPDX-License-Identifier: ISC */
#include "qmgr/dest_command.h"

#include "base/address.h"
#include "base/mem.h"
#include "qmgr/dest/conn.h"
#include "qmgr/dest/pooling.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/remembered.h"
#include "qmgr/dest/source.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/domain_mail.h"
#include "qmgr/flow_sites.h"
#include "qmgr/nexthop.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int64_t time_left(int64_t until_ms, int64_t now_ms)
{
	return until_ms > now_ms ? until_ms - now_ms : 0;
}

static void copy_host(struct dest_host *to, struct qmgr *q, const struct host *h)
{
	char where[ADDRESS_WHERE_MAX];
	int64_t now_ms = scheduler_now_ms(&q->sched);
	*to = (struct dest_host){
		.login = h->credential ? mem_strdup(h->credential->login) : NULL,
		.address = mem_strdup(address_where(&h->address, where)),
		.port = address_port(&h->address),
		.state = destdb_state(h, now_ms),
		.connections = h->connections,
		.ready = h->ready,
		.idle = h->nidle,
		.failures = h->failures,
		.unanswered = h->unanswered,
		.doubts = pooling_doubts(h),
		.retry_in_ms = h->state == HOST_UP ? 0 : time_left(h->retry_ms, now_ms),
		.opened_ago_ms = h->opened_ms ? now_ms - h->opened_ms : -1,
		.depth = h->depth,
		.mode = host_mode_name(host_mode(h, now_ms)),
		.mode_in_ms = time_left(h->mode_until_ms, now_ms),
		.classical_in_ms = host_mode(h, now_ms) & CONNECTION_SMALL_HELLO
					   ? time_left(h->mode_until_ms, now_ms)
					   : 0,
		.messages_most = host_messages_most(h, now_ms),
		.messages_in_ms = time_left(h->messages_until_ms, now_ms),
		.recipients_most = host_recipients_most(h, now_ms),
		.recipients_in_ms = time_left(h->recipients_until_ms, now_ms),
		.slow_in_ms = time_left(h->slow_until_ms, now_ms),
		.limit = h->limit.n,
		.limit_in_ms = h->limit.n > 0 ? time_left(h->limit.again_ms, now_ms) : 0,
		.round_trip_us = h->speed.r_us,
		.service_us = h->speed.s_us,
	};
}

static void copy_site_host(struct dest_host *to, struct qmgr *q, const struct site_host *it)
{
	copy_host(to, q, it->host);
	to->name = mem_strdup(it->name);
	to->peer = mem_strdup(it->peer);
	to->preference = it->preference & 0xffff;
	to->plain_in_ms =
		time_left(host_plain_until_ms(it->host, it->name), scheduler_now_ms(&q->sched));
	to->why = host_why(it->host, it->name);
	if (it->suspended)
		to->state = "suspended";
}

static void copy_site(struct dest_site *to, struct qmgr *q, const struct site *s)
{
	const struct conf_transport *t = s->queue.transport->settings;
	*to = (struct dest_site){
		.key = mem_strdup(s->key),
		.name = mem_strdup(s->name),
		.transport = mem_strdup(s->queue.transport->title),
		.source = mem_strdup(source_name(s)),
		.shut_in_ms = time_left(source_shut_until_ms(s), scheduler_now_ms(&q->sched)),
		.provider = s->provider ? mem_strdup(s->provider->name) : NULL,
		.shared = site_pace_shared(s),
		.state = site_state_name(s),
		.window = s->window.concurrency,
		.limit = (int)t->destination_concurrency_limit,
		.connections = s->connections,
		.connecting = s->connecting,
		.busy = s->busy,
		.idle = s->connections - s->connecting - s->busy,
		.waiting = s->queue.waiting,
		.verdicts = s->verdicts,
		.unreached = s->unreached,
		.parked = s->parked.parked,
		.deferred = s->parked.deferred,
		.number = s->parked.number,
		.rate_events = t->destination_rate.events,
		.rate_per_ms = t->destination_rate.per_ms,
		.delay_ms = t->destination_rate_delay,
		.dead_in_ms = time_left(site_down_until_ms(s), scheduler_now_ms(&q->sched)),
		.pace = site_pace_rate(s),
		.paced_ms = s->pacing->since_ms,
		.refused = verdict_ref(s->pacing->why),
		.last = verdict_ref(s->last_failure),
		.nhost = s->nhost,
		.host = mem_zalloc((size_t)s->nhost * sizeof *to->host + 1),
	};
	if (to->idle < 0)
		to->idle = 0; /* closed ones may still wait for what they carried */
	for (int i = 0; i < s->nhost; i++)
		copy_site_host(&to->host[i], q, &s->hosts[i]);
}

/* A next hop by MX has its domain in its key. */
static void copy_domains(struct dest_site *to, const struct qmgr *q, const struct site *s)
{
	for (const struct nexthop *n = q->nexthops; n; n = n->hh.next) {
		if (nexthop_site(n) != s || n->site_name)
			continue;
		to->domain = mem_realloc(to->domain, (size_t)(to->ndomain + 1) * sizeof(char *));
		to->domain[to->ndomain++] = nexthop_target(n);
	}
}

/* Those by relays are known by their mail. */
static void copy_seen_domains(struct dest_site *to, const struct site *s)
{
	const struct site_domains *d = s->domains;
	if (!d || to->ndomain > 0)
		return;
	to->domains_seen = true;
	to->domain = mem_realloc(to->domain, (size_t)d->nname * sizeof(char *));
	for (int i = 0; i < d->nname; i++)
		to->domain[to->ndomain++] = mem_strdup(d->name[i]);
	to->more_domains = d->n - d->nname;
}

static bool has_domain(const struct dest_site *s, const char *domain)
{
	for (int i = 0; i < s->ndomain; i++)
		if (strcmp(s->domain[i], domain) == 0)
			return true;
	return false;
}

static void take_domain(struct dest_site *to, char *domain)
{
	if (to->ndomain == DEST_DOMAINS_MOST || has_domain(to, domain)) {
		to->more_domains += to->ndomain == DEST_DOMAINS_MOST;
		free(domain);
		return;
	}
	to->domain = mem_realloc(to->domain, (size_t)(to->ndomain + 1) * sizeof(char *));
	to->domain[to->ndomain++] = domain;
}

/* Where a copied site is found by the site. */
struct copied {
	const void *site;
	struct dest_site *to;
	UT_hash_handle hh;
};

/* Of all sites at once: next hops are looked at once, however many sites there are. */
static void copy_all_domains(struct dest_command *c, const struct qmgr *q)
{
	struct copied *by_site = NULL, *found;
	struct copied *room = mem_zalloc(((size_t)c->nsite + 1) * sizeof *room);
	for (int i = 0; i < c->nsite; i++) {
		room[i] = (struct copied){.site = c->site[i].of, .to = &c->site[i]};
		HASH_ADD_PTR(by_site, site, &room[i]);
	}
	for (const struct nexthop *n = q->nexthops; n; n = n->hh.next) {
		const void *site = nexthop_site(n);
		if (!site || n->site_name)
			continue;
		HASH_FIND_PTR(by_site, &site, found);
		if (found)
			take_domain(found->to, nexthop_target(n));
	}
	HASH_CLEAR(hh, by_site);
	free(room);
	for (int i = 0; i < c->nsite; i++)
		copy_seen_domains(&c->site[i], c->site[i].of);
}

static bool has_all(const struct dest_command *c, int n)
{
	return c->most > 0 && n >= c->most;
}

static void add_site(struct dest_command *c, struct qmgr *q, const struct site *s)
{
	c->site = mem_realloc(c->site, (size_t)(c->nsite + 1) * sizeof *c->site);
	copy_site(&c->site[c->nsite], q, s);
	c->site[c->nsite].of = s;
	if (c->past) {
		c->site[c->nsite].past = mem_zalloc(sizeof *c->site[c->nsite].past);
		site_hour_copy(s, c->site[c->nsite].past);
	}
	if (c->name) {
		copy_domains(&c->site[c->nsite], q, s);
		copy_seen_domains(&c->site[c->nsite], s);
	}
	c->nsite++;
}

static void add_host(struct dest_command *c, struct qmgr *q, const struct host *h)
{
	c->host = mem_realloc(c->host, (size_t)(c->nhost + 1) * sizeof *c->host);
	struct dest_host *to = &c->host[c->nhost++];
	const struct list *any = list_first(&h->sites);
	if (any) {
		copy_site_host(to, q, list_entry(any, struct site_host, in_host));
		return;
	}
	copy_host(to, q, h);
	to->name = mem_strdup("");
	to->peer = mem_strdup(h->peer);
	to->why = host_why(h, "");
}

static bool is_meant(const struct dest_command *c, const struct site *s)
{
	if (c->provider)
		return s->provider && strcmp(s->provider->name, c->provider) == 0;
	return !c->name || suspend_site_is(s, c->name);
}

static void add_suspended(struct dest_command *c, const struct suspended *n)
{
	c->suspended =
		mem_realloc(c->suspended, (size_t)(c->nsuspended + 1) * sizeof *c->suspended);
	c->suspended[c->nsuspended++] =
		(struct dest_suspended){.name = mem_strdup(n->name),
					.provider = n->kind == SUSPEND_PROVIDER,
					.until_ms = n->until_ms};
}

static void look_up_sites(struct qmgr *q, struct dest_command *c)
{
	struct flow_sites *of_flow = c->flow ? flow_sites_find(q, c->flow) : NULL;
	for (const struct site *s = q->db.sites; s && !has_all(c, c->nsite); s = s->hh.next)
		if (of_flow ? flow_sites_have(of_flow, s) &&
				      (is_meant(c, s) ||
				       (c->name && domain_mail_goes_to(q, c->name, s)))
			    : is_meant(c, s))
			add_site(c, q, s);
	flow_sites_free(&of_flow);
}

/* Sites of that name or provider; or if none has the name, hosts. A flow has sites only. */
static void look_up(struct qmgr *q, struct dest_command *c)
{
	look_up_sites(q, c);
	if (c->flow) {
		c->found = c->nsite;
		return;
	}
	c->hosts = c->name && c->nsite == 0;
	for (const struct host *h = q->db.hosts; h && !has_all(c, c->nhost); h = h->hh.next)
		if (c->name ? c->hosts && suspend_means_host(h, c->name)
			    : h->refs == 0 && !c->provider)
			add_host(c, q, h);
	c->found = c->nsite + c->nhost + (c->provider && provider_known(&q->db, c->provider));
	for (const struct suspended *n = q->db.suspended; n && !c->name; n = n->hh.next)
		if ((!c->provider && n->kind != SUSPEND_FLOW) ||
		    (c->provider && n->kind == SUSPEND_PROVIDER &&
		     strcmp(n->name, c->provider) == 0))
			add_suspended(c, n);
}

static void reset_by_name(struct qmgr *q, const char *name, bool hosts, bool everywhere)
{
	for (struct site *s = q->db.sites; s && !hosts; s = s->hh.next)
		if (suspend_site_is(s, name))
			site_reset(s, everywhere);
	for (struct host *h = q->db.hosts; h && hosts; h = h->hh.next)
		if (suspend_means_host(h, name)) {
			conn_set_depth(h, 1);
			host_forget(h);
			pooling_forgotten(&q->db, h, everywhere);
			site_feed_waiting_for(h);
			site_host_changed(h);
		}
	for (struct site *s = q->db.sites; s && hosts; s = s->hh.next)
		site_touch(s);
	q->db.learnt = true;
}

/* A next hop by MX has its domain in its key. */
static bool knows_domain(const struct qmgr *q, const char *domain)
{
	for (const struct nexthop *n = q->nexthops; n; n = n->hh.next)
		if (nexthop_is_for(n, domain))
			return true;
	return false;
}

static void add_sites_of_domain(struct qmgr *q, struct dest_command *c)
{
	for (const struct site *s = q->db.sites; s; s = s->hh.next)
		if (domain_mail_goes_to(q, c->name, s))
			add_site(c, q, s);
	c->found += c->nsite;
}

static void reset_listed(struct qmgr *q, const struct dest_command *c)
{
	for (int i = 0; i < c->nsite; i++)
		reset_by_name(q, c->site[i].name, false, c->everywhere);
	if (c->provider)
		provider_forget_pace(&q->db, c->provider);
}

/* A domain or host that is not known yet may be named in advance. */
static void suspend_named(struct qmgr *q, struct dest_command *c)
{
	if (c->provider) {
		if (c->found > 0)
			suspend_begin(&q->db, c->provider, SUSPEND_PROVIDER, c->until_ms);
		return;
	}
	enum suspend_kind kind = c->found > 0 ? (c->hosts ? SUSPEND_HOST : SUSPEND_SITE)
				 : knows_domain(q, c->name) ? SUSPEND_DOMAIN
							    : SUSPEND_ANY;
	bool news = suspend_begin(&q->db, c->name, kind, c->until_ms);
	if (news && suspend_means_domains(kind)) {
		domain_mail_hold(q, c->name);
		qmgr_thread_settle(q);
	}
	c->found = 1;
}

void dest_execute(struct qmgr *q, struct dest_command *c)
{
	assert(c->nsite == 0 && c->nhost == 0 && c->nsuspended == 0);
	look_up(q, c);
	if (c->domains && !c->name)
		copy_all_domains(c, q);
	if (c->op == ORDER_RESUME)
		c->found = c->provider ? suspend_end_one(&q->db, c->provider, SUSPEND_PROVIDER)
				       : suspend_end(&q->db, c->name);
	else if (c->op == ORDER_SUSPEND)
		suspend_named(q, c);
	else if (c->found == 0 && c->name && !c->flow)
		add_sites_of_domain(q, c);
	if (c->op == ORDER_RESET && c->hosts && c->nhost > 0)
		reset_by_name(q, c->name, true, c->everywhere);
	else if (c->op == ORDER_RESET)
		reset_listed(q, c);
	if (c->op == ORDER_RESET && c->name)
		c->found += remembered_forget_site(&q->db, c->name); /* no mail goes there yet */
	if (order_changes(c->op))
		qmgr_thread_save(q); /* before the answer, so that it is on disk by then */
	loop_post(c->reply_to, &c->note);
}

struct dest_command *dest_command_new(enum order op, const char *name, struct loop *reply_to,
				      void *owner)
{
	struct dest_command *c = mem_zalloc(sizeof *c);
	c->note.type = DEST_COMMAND;
	c->op = op;
	c->name = mem_strdup(name);
	c->reply_to = reply_to;
	c->owner = owner;
	return c;
}

static void fini_hosts(struct dest_host *h, int n)
{
	for (int i = 0; i < n; i++) {
		free(h[i].name);
		free(h[i].address);
		free(h[i].peer);
		free(h[i].login);
		verdict_unref(h[i].why);
	}
	free(h);
}

void dest_command_free(struct dest_command **cp)
{
	struct dest_command *c = *cp;
	if (!c)
		return;
	for (int i = 0; i < c->nsite; i++) {
		fini_hosts(c->site[i].host, c->site[i].nhost);
		free(c->site[i].key);
		free(c->site[i].name);
		free(c->site[i].transport);
		free(c->site[i].provider);
		free(c->site[i].source);
		for (int k = 0; k < c->site[i].ndomain; k++)
			free(c->site[i].domain[k]);
		free(c->site[i].domain);
		free(c->site[i].past);
		verdict_unref(c->site[i].last);
		verdict_unref(c->site[i].refused);
	}
	free(c->site);
	fini_hosts(c->host, c->nhost);
	for (int i = 0; i < c->nsuspended; i++)
		free(c->suspended[i].name);
	free(c->suspended);
	free(c->provider);
	free(c->flow);
	free(c->name);
	free(c);
	*cp = NULL;
}
