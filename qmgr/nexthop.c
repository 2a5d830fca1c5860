/* SPDX-License-Identifier: ISC */
#include "qmgr/nexthop.h"

#include "base/address.h"
#include "base/buf.h"
#include "base/date.h"
#include "base/magic.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/tls_dane.h"
#include "base/tls_result.h"
#include "qmgr/dest/source.h"
#include "qmgr/route/nexthop_name.h"
#include "qmgr/route/source_choice.h"
#include "qmgr/sched/flow.h"
#include "qmgr/sched/job.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Hosts once found serve this long without another question: dns has the time to live, but every
 * question costs two hops between threads. */
enum { FRESH_MS = 5000 };

/* The end of the names of key and site. Without the recipient's demands a site is one of those that have none. */
static const char *const wishes[] = {[ENVELOPE_TLS_USUAL] = "",
				     [ENVELOPE_TLS_REQUIRED] = " requiretls",
				     [ENVELOPE_TLS_WAIVED] = " tls-required=no"};

/* Behind the transport, before what else tells next hops apart. */
static const char *target_of(const struct nexthop *n, size_t *len)
{
	const char *it = strchr(n->key, ' ') + 1;
	it += n->relays ? strlen(NEXTHOP_RELAYS) : 0;
	*len = strcspn(it, " ");
	return it;
}

char *nexthop_target(const struct nexthop *n)
{
	size_t len;
	const char *it = target_of(n, &len);
	return mem_strndup(it, len);
}

bool nexthop_is_for(const struct nexthop *n, const char *domain)
{
	char *target = nexthop_target(n);
	bool is = !n->relays && name_key_same(domain, target);
	free(target);
	return is;
}

/* By the transport that its job has: the route's, or what a provider wanted. */
static struct route route_of(const struct job *job, const struct route *way)
{
	struct route route = *way;
	route.named |= strcmp(route.by->title, job->transport->title) != 0;
	route.by = job->transport->settings;
	return route;
}

/* A key without source, in which each is tried in turn. */
struct choosing {
	const struct qmgr *q;
	const char *key;
};

static struct nexthop *find_nexthop(const struct qmgr *q, struct buf *key)
{
	struct nexthop *n = q->led_last;
	if (n && strcmp(n->key, buf_cstr(key)) == 0)
		return n;
	HASH_FIND(hh, q->nexthops, buf_cstr(key), buf_len(key), n);
	return n;
}

/* As far as is known; nothing is known of one that was never asked about. */
static bool is_shut(const struct nexthop *n)
{
	const struct site *s = nexthop_site(n);
	return n->lacks || (s && source_shut(s));
}

/* With its addresses: from others it is another next hop. */
static void write_source(struct buf *key, const struct conf_source *source)
{
	buf_printf(key, "%s%s", SITE_FROM, source->title);
	for (int i = 0; i < source->address.n; i++)
		buf_printf(key, ",%s", source->address.item[i]);
}

/* Nothing speaks against it, as far as is known. */
static bool source_serves(void *context, const struct conf_source *source)
{
	const struct choosing *c = context;
	struct buf key = {0};
	buf_puts(&key, c->key);
	write_source(&key, source);
	const struct nexthop *n = find_nexthop(c->q, &key);
	buf_fini(&key);
	return !n || !is_shut(n);
}

/* Where none serves, the one whose turn it is waits; NULL: none is named. */
static const struct conf_source *choose_source(const struct job *job, const char *key)
{
	const struct scheduler *sched = job->transport->scheduler;
	const char *flow = job->work->flow->name;
	const struct conf_uses *uses = source_uses(sched->conf, job->transport->settings, flow);
	struct choosing c = {message_of_work(job->work)->qmgr, key};
	if (uses->n == 0)
		return NULL;
	int64_t now_ms = date_ms();
	const struct conf_source *first = source_choose(uses, flow, now_ms, source_serves, &c);
	return first ? first : source_choose(uses, flow, now_ms, NULL, NULL);
}

struct nexthop *nexthop_of(struct job *job, uint32_t recipient, const struct route *way)
{
	struct message *m = message_of_work(job->work);
	struct qmgr *q = m->qmgr;
	assert(recipient < job->work->envelope->nrcpt);
	const char *address = job->work->envelope->rcpt[recipient].address;
	const struct route route = route_of(job, way);
	bool open = q->sched.conf->providers_carry && !route.named;
	struct buf *key = &q->hop_key;
	buf_clear(key);
	nexthop_write_key(key, &route, address);
	char *tls = nexthop_tls(q->sched.conf->tables, &route, address);
	enum envelope_tls wish = job->work->envelope->tls;
	assert(wish < sizeof wishes / sizeof wishes[0]);
	buf_puts(key, " tls=");
	buf_puts(key, tls);
	buf_puts(key, wishes[wish]);
	buf_puts(key, open ? " open" : "");
	char *logins =
		nexthop_logins(q->sched.conf->tables, &route, job->work->envelope->sender, address);
	buf_puts(key, logins ? logins : "");
	nexthop_write_terms(key, q->sched.conf->tables, &route, job->work->envelope->sender,
			    address);
	const struct conf_source *source = choose_source(job, buf_cstr(key));
	if (source)
		write_source(key, source);
	struct nexthop *n = q->led_last = find_nexthop(q, key);
	if (n) {
		assert(n->transport == job->transport);
		free(tls);
		free(logins);
		return n;
	}
	n = mem_zalloc(sizeof *n);
	n->magic = NEXTHOP_MAGIC;
	n->key = mem_strdup(buf_cstr(key));
	n->qmgr = q;
	list_init(&n->in_brisk);
	n->tls = tls;
	n->wish = wish;
	n->open = open;
	n->site_name = nexthop_site_name(&route, address);
	n->relays = nexthop_site_relays(&route);
	n->logins = logins;
	n->source = source ? mem_strdup(source->title) : NULL;
	n->transport = job->transport;
	n->by_mx = nexthop_lookup_by_mx(&route, address);
	HASH_ADD_KEYPTR(hh, q->nexthops, n->key, strlen(n->key), n);
	return n;
}

static bool is_named(const struct job *job, const char *source)
{
	const struct conf_uses *uses = source_uses(job->transport->scheduler->conf,
						   job->transport->settings, job->work->flow->name);
	for (int i = 0; i < uses->n; i++)
		if (strcmp(uses->of[i].source->title, source) == 0)
			return true;
	return false;
}

static bool has_source_of(const struct nexthop *n, const struct site *s)
{
	const char *is = source_name(s);
	return is && n->source ? strcmp(is, n->source) == 0 : is == n->source;
}

static bool changes_source(const struct job *job, const struct nexthop *n, const struct site *s)
{
	const char *is = source_name(s);
	bool stays = is && n->source && is_shut(n) && is_named(job, is);
	return !stays && !has_source_of(n, s);
}

bool nexthop_moves(struct job *job, uint32_t recipient, const struct route *way,
		   const struct site *s)
{
	return changes_source(job, nexthop_of(job, recipient, way), s);
}

bool nexthop_has_left(struct job *job, uint32_t recipient, const struct route *way,
		      const struct site *s)
{
	const struct nexthop *n = nexthop_of(job, recipient, way);
	return has_source_of(n, s) ? nexthop_site(n) != s : changes_source(job, n, s);
}

bool nexthop_known(const struct nexthop *n)
{
	return (n->elsewhere || n->way.queue) && !n->lacks && n->lookup.asking == 0 &&
	       scheduler_now_ms(&n->qmgr->sched) < n->fresh_until_ms;
}

int64_t nexthop_age_ms(const struct nexthop *n)
{
	return scheduler_now_ms(&n->qmgr->sched) - n->known_ms;
}

bool nexthop_to_renew(const struct nexthop *n)
{
	int64_t asked_ms = scheduler_now_ms(&n->qmgr->sched) - n->asked_ms;
	return n->lookup.asking == 0 && nexthop_age_ms(n) >= NEXTHOP_RENEW_MS &&
	       asked_ms >= NEXTHOP_RENEW_MS;
}

void nexthop_forget_age(struct nexthop *n)
{
	n->fresh_until_ms = 0;
	n->known_ms = -NEXTHOP_OLD_MS;
}

void nexthop_ask(struct nexthop *n, const struct job *job, uint32_t recipient,
		 const struct route *way)
{
	struct message *m = message_of_work(job->work);
	const struct route route = route_of(job, way);
	const char *address = m->work.envelope->rcpt[recipient].address;
	assert(n->lookup.asking == 0);
	struct qmgr *q = n->qmgr;
	const struct conf_tls *tls = &q->sched.conf->tls;
	/* Where nobody is trusted no policy could be kept to. */
	bool sts = tls->mta_sts && *tls->ca && n->wish != ENVELOPE_TLS_WAIVED;
	const char *flow = job->work->flow->name;
	n->overtaken = false;
	nexthop_lookup_begin(
		&n->lookup, &route, address,
		&(struct nexthop_edge){.reply_to = q->sched.loop,
				       .owner = n,
				       .ask = q->db.edges.to_dns,
				       .ask_sts = sts ? q->db.edges.to_sts : NULL,
				       .context = q->db.edges.context,
				       .tables = q->sched.conf->tables,
				       .sender = m->work.envelope->sender,
				       .line = (unsigned)keyed_hash(flow, strlen(flow)),
				       .tls = n->tls,
				       .wish = n->wish,
				       .dane = q->sched.conf->tls.dane});
}

void nexthop_wait(struct nexthop *n, struct job *job, uint32_t recipient)
{
	assert(n->lookup.asking > 0);
	n->waiting = mem_room(n->waiting, n->nwaiting, sizeof *n->waiting);
	n->waiting[n->nwaiting++] = (struct waiting_recipient){job, recipient};
}

static char *peer_name(const char *name, const union address *address)
{
	char text[ADDRESS_PEER_MAX];
	return mem_strdup(address_peer(address, name, text));
}

/* NULL: the system chooses, or it is in the configuration no more. */
static const struct conf_source *source_of(const struct nexthop *n)
{
	return n->source ? conf_source_find(n->qmgr->sched.conf, n->source) : NULL;
}

/* A host to which something can go from the source. */
static bool host_fits(const struct nexthop *n, const struct nexthop_host *to)
{
	const struct conf_source *source = source_of(n);
	return !source || address_is_unix(&to->address) ||
	       conf_source_address(source, to->address.sa.sa_family);
}

static bool any_fits(struct nexthop *n)
{
	struct nexthop_host *to;
	int all = nexthop_lookup_hosts(&n->lookup, &to);
	bool found = false;
	for (int i = 0; i < all; i++)
		found |= host_fits(n, &to[i]);
	free(to);
	return found;
}

static struct host *host_of(struct nexthop *n, const struct nexthop_host *from, const char *of_hop)
{
	char *tls = nexthop_tls_of_host(of_hop, from);
	struct host *h = destdb_get(&n->qmgr->db, n->transport, &from->address, source_of(n), tls,
				    from->credential);
	free(tls);
	return h;
}

/* The site is called besides as what its hosts must prove. */
static struct site_host *gather_hosts(struct nexthop *n, int *count, struct buf *name)
{
	struct nexthop_host *from;
	const struct tables *tables = n->qmgr->sched.conf->tables;
	int all = nexthop_lookup_hosts(&n->lookup, &from);
	struct site_host *hosts = mem_zalloc((size_t)all * sizeof *hosts);
	*count = 0;
	for (int i = 0; i < all; i++) {
		if (!host_fits(n, &from[i]))
			continue;
		char *of_hop = nexthop_tls_of_hop(tables, n->tls, &from[i]);
		if (from[i].dane && !from[i].sts)
			nexthop_add_dane(name, from[i].dane);
		else
			nexthop_add_tls(name, of_hop, n->transport->settings,
					n->site_name ? from[i].hop : NULL);
		hosts[(*count)++] =
			(struct site_host){.host = host_of(n, &from[i], of_hop),
					   .name = mem_strdup(from[i].name),
					   .peer = peer_name(from[i].name, &from[i].address),
					   .dane = tls_dane_ref(from[i].dane),
					   .preference = from[i].preference,
					   .weight = from[i].weight};
		free(of_hop);
	}
	free(from);
	return hosts;
}

static void leave_site(struct nexthop *n)
{
	struct site *s = nexthop_site(n);
	assert(!s || s->refs > 0);
	if (s)
		s->refs--;
	n->way.queue = NULL;
}

/* A site of its own for the source, behind all that the site is called. */
static void enter_site(struct nexthop *n)
{
	int count;
	struct buf full = {0};
	char *name = n->site_name ? mem_strdup(n->site_name)
				  : nexthop_name_of_hosts(nexthop_lookup_best(&n->lookup));
	buf_printf(&full, "%s%s", name, n->logins ? n->logins : "");
	struct site_host *hosts = gather_hosts(n, &count, &full);
	if (n->wish == ENVELOPE_TLS_REQUIRED)
		buf_puts(&full, wishes[n->wish]);
	if (n->source)
		buf_printf(&full, "%s%s", SITE_FROM, n->source);
	struct site *site = site_get(&n->qmgr->db, n->transport, n->relays, buf_cstr(&full));
	buf_fini(&full);
	free(name);
	source_join(site, n->source);
	site_set_hosts(site, hosts, count);
	site_pace_meet(site);
	site->refs++;
	leave_site(n);
	n->way.queue = &site->queue;
}

void nexthop_enter(struct nexthop *n, struct job *job, uint32_t recipient)
{
	assert(n->way.queue && !n->elsewhere);
	const struct message *m = message_of_work(job->work);
	job_add_recipient(job, &n->way, recipient);
	if (n->site_name)
		site_domains_add(&nexthop_site(n)->domains,
				 mailaddr_domain(m->work.envelope->rcpt[recipient].address));
	if (m->urgent)
		site_try_now(nexthop_site(n));
}

static void report_fault(const struct nexthop *n, const struct verdict *failure)
{
	enum tls_result_type fault = n->lookup.fault;
	struct tls_result *r = tls_result_new(n->way.subject, fault, failure->text);
	if (fault == TLS_RESULT_DNSSEC_INVALID || fault == TLS_RESULT_DANE_REQUIRED)
		r->policy = TLS_RESULT_OF_TLSA;
	loop_post(n->way.subject->to, &r->note);
}

/* For whom the connections to come are counted; and what keeps them from coming. */
static void settle_subject(struct nexthop *n, const struct verdict *failure)
{
	struct qmgr *q = n->qmgr;
	bool wanted = q->db.edges.reports && q->sched.conf->tls_report.enabled && n->by_mx;
	tls_subject_unref(n->way.subject);
	n->way.subject = NULL;
	if (!wanted || n->wish == ENVELOPE_TLS_WAIVED)
		return;
	char *domain = nexthop_target(n), *ascii = name_key(domain);
	n->way.subject = tls_subject_new(q->db.edges.reports, ascii,
					 n->lookup.sts ? n->lookup.sts->policy : NULL);
	free(ascii);
	free(domain);
	if (failure && n->lookup.fault != TLS_RESULT_SUCCESS)
		report_fault(n, failure);
}

/* NULL: that which it has. */
static struct transport *wanted_by_provider(const struct nexthop *n)
{
	struct scheduler *sched = &n->qmgr->sched;
	const struct conf_provider *p =
		n->open ? nexthop_lookup_provider(&n->lookup, sched->conf) : NULL;
	struct transport *by = p && p->by ? transport_get(sched, p->by) : NULL;
	return by != n->transport ? by : NULL;
}

static struct verdict *no_address(const struct nexthop *n)
{
	return verdict_printf(
		VERDICT_DEFERRED, 0, "4.3.0", NULL,
		"source %s has no address of the family of the hosts, nor has another", n->source);
}

/* Nothing may go there, or there is nothing. That nobody could tell says nothing of what was found before. */
static bool leads_nowhere(const struct nexthop *n, const struct verdict *failure)
{
	return failure &&
	       (failure->class == VERDICT_FAILED || n->lookup.fault != TLS_RESULT_SUCCESS);
}

/* All that was asked is known. */
static void conclude_lookup(struct nexthop *n, struct verdict **why)
{
	assert(n->lookup.asking == 0);
	struct verdict *failure = nexthop_lookup_failure(&n->lookup);
	n->heard = n->lookup.heard;
	n->elsewhere = failure ? NULL : wanted_by_provider(n);
	n->lacks = !failure && !n->elsewhere && n->source && !any_fits(n);
	if (n->lacks)
		failure = no_address(n);
	int64_t now_ms = scheduler_now_ms(&n->qmgr->sched);
	n->fresh_until_ms = now_ms + (failure ? 0 : FRESH_MS);
	n->known_ms = failure ? n->known_ms : now_ms;
	settle_subject(n, failure);
	if (leads_nowhere(n, failure))
		leave_site(n);
	else if (!failure && !n->elsewhere)
		enter_site(n);
	nexthop_lookup_clear(&n->lookup);
	assert(failure || n->elsewhere || n->way.queue);
	*why = failure;
}

struct nexthop *nexthop_answered(struct resolve *r, struct verdict **why)
{
	struct nexthop *n = r->owner;
	if (!nexthop_lookup_answered(&n->lookup, r))
		return NULL;
	conclude_lookup(n, why);
	return n;
}

struct nexthop *nexthop_sts_answered(struct sts_ask *a, struct verdict **why)
{
	struct nexthop *n = a->owner;
	if (!nexthop_lookup_sts_answered(&n->lookup, a))
		return NULL;
	conclude_lookup(n, why);
	return n;
}

size_t nexthop_take_waiting(struct nexthop *n, struct waiting_recipient **waiting)
{
	size_t nwaiting = n->nwaiting;
	*waiting = n->waiting;
	n->waiting = NULL;
	n->nwaiting = 0;
	return nwaiting;
}

bool nexthop_leads_on(struct nexthop *n, const struct waiting_recipient *w, const struct route *way)
{
	return n->elsewhere ||
	       ((n->source || n->overtaken) && nexthop_of(w->job, w->recipient, way) != n);
}

void nexthop_free(struct nexthop *n)
{
	assert(n->way.peers == 0 && n->nwaiting == 0 && list_empty(&n->in_brisk));
	magic_clear(n);
	leave_site(n);
	tls_subject_unref(n->way.subject);
	HASH_DEL(n->qmgr->nexthops, n);
	if (n->qmgr->led_last == n)
		n->qmgr->led_last = NULL;
	nexthop_lookup_clear(&n->lookup);
	free(n->waiting);
	free(n->tls);
	free(n->site_name);
	free(n->relays);
	free(n->logins);
	free(n->source);
	free(n->key);
	free(n);
}
