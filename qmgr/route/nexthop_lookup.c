/* SPDX-License-Identifier: ISC */
#include "qmgr/route/nexthop_lookup.h"

#include "base/address.h"
#include "base/mailaddr.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/tls_dane.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct nexthop_answer {
	struct resolve *resolve; /* NULL while it is asked for */
	int port, weight;
	uint32_t group;		       /* equal: shared by weight */
	struct credential *credential; /* or NULL */
	enum transport_tls level;
	enum tls_policy_dane dane;
};

/* Those of one group share a preference; where there are weights they are shares of connections. */
static struct nexthop_answer *add_question(struct nexthop_lookup *l, struct resolve *ask, int port)
{
	int i = l->nanswer++;
	l->answer = mem_realloc(l->answer, (size_t)l->nanswer * sizeof *l->answer);
	struct nexthop_answer *a = &l->answer[i];
	ask->order = i;
	*a = (struct nexthop_answer){.resolve = ask, .port = port};
	a->group = i > 0 ? l->answer[i - 1].group + 1 : 0;
	return a;
}

/* A literal address has no name that there could be TLSA records of, and a Unix socket needs none. */
static void want_dane(struct nexthop_answer *a, struct resolve *ask,
		      const struct conf_transport *by, const struct nexthop_edge *edge)
{
	union address unused;
	const char *said = edge->tls ? edge->tls : by->tls;
	char *row =
		tls_policy_row(edge->tables, ask->name, ask->kind == RESOLVE_HOST, a->port, NULL);
	const char *holds = tls_policy_strictest(said, row);
	a->level = tls_policy_level(holds);
	a->dane = tls_policy_dane(holds, edge->dane || edge->wish == ENVELOPE_TLS_REQUIRED);
	bool waived = edge->wish == ENVELOPE_TLS_WAIVED && a->dane == TLS_DANE_WANTED;
	if (waived || address_parse_unix(ask->name, &unused))
		a->dane = TLS_DANE_IGNORED;
	ask->dane = a->dane != TLS_DANE_IGNORED;
	ask->port = a->port;
	free(row);
}

static void add_relays(struct nexthop_lookup *l, const struct conf_list *relays,
		       const struct conf_transport *by, const struct nexthop_edge *edge)
{
	int weight_before = 0;
	for (int i = 0; i < relays->n; i++) {
		struct conf_relay r;
		if (!conf_relay_read(relays->item[i], &r))
			continue; /* the configuration was checked when it was read */
		struct resolve *ask = resolve_new(r.bracketed ? RESOLVE_HOST : RESOLVE_MX, r.host,
						  edge->reply_to, edge->owner);
		ask->trusted = true;
		struct nexthop_answer *a =
			add_question(l, ask, r.port > 0 ? r.port : (int)by->port);
		want_dane(a, ask, by, edge);
		a->weight = r.weight;
		a->credential = credential_find(edge->tables, relays->item[i], edge->sender);
		if (r.weight > 0 && weight_before > 0)
			a->group--;
		weight_before = r.weight;
		free(r.host);
	}
}

static void add_domain(struct nexthop_lookup *l, const char *domain,
		       const struct conf_transport *by, const struct nexthop_edge *edge)
{
	struct conf_relay of = {.host = NULL};
	bool literal = domain[0] == '[' && conf_relay_read(domain, &of);
	char *name = literal ? of.host : mem_strdup(domain);
	struct resolve *ask =
		resolve_new(literal ? RESOLVE_HOST : RESOLVE_MX, name, edge->reply_to, edge->owner);
	struct nexthop_answer *a = add_question(l, ask, (int)by->port);
	want_dane(a, ask, by, edge);
	a->credential = credential_find(edge->tables, domain, edge->sender);
	free(name);
}

bool nexthop_lookup_by_mx(const struct route *route, const char *address)
{
	return route->relay->n == 0 && mailaddr_domain(address)[0] != '[' &&
	       route->by->protocol == TRANSPORT_PROTOCOL_SMTP;
}

static void ask_policy(const char *domain, const struct nexthop_edge *edge)
{
	struct sts_ask *ask = sts_ask_new(domain, edge->reply_to, edge->owner);
	ask->line = edge->line;
	edge->ask_sts(edge->context, &ask->note);
}

void nexthop_lookup_begin(struct nexthop_lookup *l, const struct route *route, const char *address,
			  const struct nexthop_edge *edge)
{
	assert(l->asking == 0 && l->nanswer == 0);
	l->wish = edge->wish;
	if (route->relay->n > 0)
		add_relays(l, route->relay, route->by, edge);
	else
		add_domain(l, mailaddr_domain(address), route->by, edge);
	l->nown = l->nanswer;
	add_relays(l, &route->by->fallback_relay, route->by, edge);
	bool sts = edge->ask_sts && nexthop_lookup_by_mx(route, address);
	l->asking = l->nanswer + sts;
	if (sts)
		ask_policy(mailaddr_domain(address), edge);
	for (int i = 0; i < l->nanswer; i++) {
		struct note *note = &l->answer[i].resolve->note;
		l->answer[i].resolve->line = edge->line;
		l->answer[i].resolve = NULL;
		edge->ask(edge->context, note);
	}
}

/* A demand of the host's TLSA records takes the place of all others. */
static bool by_records(const struct resolve_host *h)
{
	return h->dane && h->dane->nusable > 0;
}

struct verdict *nexthop_lookup_barred(const struct resolve_host *h, enum tls_policy_dane dane)
{
	if (dane == TLS_DANE_IGNORED)
		return NULL;
	if (h->unsure)
		return verdict_ref(h->unsure);
	if (dane == TLS_DANE_WANTED || by_records(h))
		return NULL;
	return verdict_printf(
		VERDICT_DEFERRED, 0, "4.7.5", NULL,
		h->dane ? "no TLSA record of %s can be used, and dane-only holds"
			: "%s has no TLSA records that DNSSEC proves, and dane-only holds",
		h->name);
}

/* RFC 8461 5.1: hosts that the policy does not have are no mail hosts, unless DNSSEC says that they are (2). */
static void keep_to_policy(struct nexthop_lookup *l)
{
	struct resolve *r = l->answer[0].resolve;
	const struct sts_policy *p = l->sts ? l->sts->policy : NULL;
	if (!p || p->mode != STS_ENFORCE || r->nhost == 0)
		return;
	char *best = mem_strdup(r->host[0].name);
	for (int i = r->nhost - 1; i >= 0; i--)
		if (!by_records(&r->host[i]) && !sts_policy_has(p, r->host[i].name))
			resolve_drop_host(r, i);
	if (r->nhost == 0)
		l->fault = TLS_RESULT_FAILED;
	if (r->nhost == 0 && !r->failure)
		r->failure = verdict_printf(
			VERDICT_DEFERRED, 0, "4.7.0", NULL,
			"the MTA-STS policy of %s has none of its mail hosts, such as %s", r->name,
			best);
	free(best);
}

/* There is a policy, or may be, and it could not be had: with it the same host may be proven. NULL: it is not so. */
static const struct sts_ask *missed_policy(const struct nexthop_lookup *l, int of)
{
	const struct sts_ask *a = of == 0 ? l->sts : NULL;
	bool missed = a && !a->policy &&
		      (a->outcome == STS_RECORD_UNKNOWN || a->outcome >= STS_FETCH_ERROR);
	return missed ? a : NULL;
}

/* Nobody could tell whether it is the host that it should be; a reference. NULL: somebody can. */
static struct verdict *refuse_unprovable(const struct nexthop_lookup *l, int of,
					 const struct resolve_host *h)
{
	union address unused;
	const struct resolve *r = l->answer[of].resolve;
	const struct sts_ask *missed = missed_policy(l, of);
	bool meant = r->kind == RESOLVE_HOST || r->security == RESOLVE_SECURE ||
		     strcmp(h->name, r->name) == 0;
	if (by_records(h) || l->answer[of].level == TRANSPORT_TLS_VERIFY || meant ||
	    address_parse_unix(h->name, &unused))
		return NULL;
	return verdict_printf(
		missed ? VERDICT_DEFERRED : VERDICT_FAILED, 0, missed ? "4.7.10" : "5.7.10", NULL,
		"REQUIRETLS was asked for, and nothing proves that %s is a mail host "
		"for %s%s%s",
		h->name, r->name, missed ? ": its MTA-STS policy can't be had now: " : "",
		missed && missed->why ? missed->why : "");
}

static void log_left_out(const struct nexthop_answer *a, const struct resolve_host *h, bool barred,
			 const struct verdict *why)
{
	const char *dane = a->dane == TLS_DANE_DEMANDED ? "dane-only" : "dane";
	log_event(LOG_LEVEL_WARNING, "tls", "host", h->name, "policy", barred ? dane : "requiretls",
		  "verified", "none", "reason", why->text, NULL);
}

/* The first that is barred says why, should there be no other. */
static void leave_out_barred(struct nexthop_lookup *l, int of)
{
	const struct nexthop_answer *a = &l->answer[of];
	struct resolve *r = a->resolve;
	bool requiretls = l->wish == ENVELOPE_TLS_REQUIRED;
	int kept = 0;
	for (int i = 0; i < r->nhost; i++) {
		struct resolve_host *h = &r->host[i];
		struct verdict *barred = nexthop_lookup_barred(h, a->dane);
		struct verdict *why = !barred && requiretls ? refuse_unprovable(l, of, h) : barred;
		if (!why) {
			r->host[kept++] = *h;
			continue;
		}
		if (barred)
			l->fault = h->unsure ? TLS_RESULT_DNSSEC_INVALID : TLS_RESULT_DANE_REQUIRED;
		log_left_out(a, h, barred, why);
		if (!r->failure)
			r->failure = verdict_ref(why);
		verdict_unref(why);
		resolve_host_fini(h);
	}
	r->nhost = kept;
}

/* Whom an enforced policy has is a mail host of the domain, as a secure MX record would tell (RFC 8689 4.2.1). */
static enum transport_tls level_of(const struct nexthop_lookup *l, int i)
{
	const struct sts_policy *p = l->sts && i == 0 ? l->sts->policy : NULL;
	return p && p->mode == STS_ENFORCE ? TRANSPORT_TLS_VERIFY : l->answer[i].level;
}

static bool one_answered(struct nexthop_lookup *l)
{
	assert(l->asking > 0);
	if (--l->asking > 0)
		return false;
	keep_to_policy(l);
	for (int i = 0; i < l->nanswer; i++) {
		l->answer[i].level = level_of(l, i);
		leave_out_barred(l, i);
	}
	return true;
}

bool nexthop_lookup_answered(struct nexthop_lookup *l, struct resolve *r)
{
	assert(l->asking > 0 && r->order < l->nanswer && !l->answer[r->order].resolve);
	assert(r->order >= 0);
	l->answer[r->order].resolve = r;
	l->heard |= r->heard;
	return one_answered(l);
}

bool nexthop_lookup_sts_answered(struct nexthop_lookup *l, struct sts_ask *a)
{
	assert(l->asking > 0 && !l->sts);
	l->sts = a;
	return one_answered(l);
}

static bool has_hosts(const struct nexthop_lookup *l, int from, int to)
{
	while (from < to && l->answer[from].resolve->nhost == 0)
		from++;
	return from < to;
}

static struct verdict *failure_of(const struct nexthop_lookup *l)
{
	struct verdict *v = l->answer[0].resolve->failure;
	for (int i = 1; i < l->nown && v->class == VERDICT_FAILED; i++)
		v = l->answer[i].resolve->failure;
	if (l->answer[0].resolve->trusted && v->class == VERDICT_FAILED)
		return verdict_printf(VERDICT_DEFERRED, 0, "4.4.4", NULL, "next hop unusable: %s",
				      v->text);
	return verdict_ref(v);
}

struct verdict *nexthop_lookup_failure(const struct nexthop_lookup *l)
{
	assert(l->asking == 0 && l->nown <= l->nanswer);
	if (has_hosts(l, 0, l->nown))
		return NULL;
	struct verdict *failure = failure_of(l);
	if (failure->class == VERDICT_DEFERRED && has_hosts(l, l->nown, l->nanswer)) {
		verdict_unref(failure);
		return NULL;
	}
	return failure;
}

const struct resolve *nexthop_lookup_best(const struct nexthop_lookup *l)
{
	assert(has_hosts(l, 0, l->nanswer));
	int first = 0;
	while (l->answer[first].resolve->nhost == 0)
		first++;
	return l->answer[first].resolve;
}

const struct conf_provider *nexthop_lookup_provider(const struct nexthop_lookup *l,
						    const struct conf *c)
{
	return has_hosts(l, 0, l->nown) ? conf_provider_of_answer(c, nexthop_lookup_best(l)) : NULL;
}

/* Of neighbours that share by weight the first hosts of each stand beside each other, and so on: what the MX records of one domain prefer
 * says nothing of those of another. */
static uint32_t preference_of(const struct nexthop_answer *a, int host)
{
	const struct resolve_host *h = a->resolve->host;
	uint32_t place = 0;
	for (int i = 1; i <= host; i++)
		place += h[i].preference != h[i - 1].preference;
	return a->group << 16 | (a->weight > 0 ? place : h[host].preference);
}

static int count_addresses(const struct resolve *r)
{
	int n = 0;
	for (int h = 0; h < r->nhost; h++)
		n += r->host[h].naddress;
	return n;
}

/* Of one preference: these share what its neighbour has. */
static int count_equal_addresses(const struct resolve *r, uint16_t preference)
{
	int n = 0;
	for (int h = 0; h < r->nhost; h++)
		n += r->host[h].preference == preference ? r->host[h].naddress : 0;
	return n;
}

/* Equals stay as they came. */
static void sort_hosts(struct nexthop_host *host, int n)
{
	for (int i = 1; i < n; i++) {
		struct nexthop_host moved = host[i];
		int at = i;
		for (; at > 0 && host[at - 1].preference > moved.preference; at--)
			host[at] = host[at - 1];
		host[at] = moved;
	}
}

static int put_hosts(const struct nexthop_lookup *l, int of, struct nexthop_host *to)
{
	const struct nexthop_answer *from = &l->answer[of];
	const struct resolve *r = from->resolve;
	int n = 0;
	for (int h = 0; h < r->nhost; h++) {
		int sharing = count_equal_addresses(r, r->host[h].preference);
		for (int a = 0; a < r->host[h].naddress; a++, n++) {
			to[n] = (struct nexthop_host){
				.name = r->host[h].name,
				.hop = r->name,
				.bracketed = r->kind == RESOLVE_HOST,
				.address = r->host[h].address[a],
				.preference = preference_of(from, h),
				.weight = (double)from->weight / sharing,
				.credential = from->credential,
				.sts = l->sts && of < l->nown && !by_records(&r->host[h])
					       ? l->sts->policy
					       : NULL,
				.dane = r->host[h].dane,
				.requiretls = l->wish == ENVELOPE_TLS_REQUIRED};
			address_set_port(&to[n].address, from->port);
		}
	}
	return n;
}

int nexthop_lookup_hosts(const struct nexthop_lookup *l, struct nexthop_host **hosts)
{
	int n = 0;
	assert(l->asking == 0);
	*hosts = NULL;
	for (int i = 0; i < l->nanswer; i++) {
		int addresses = count_addresses(l->answer[i].resolve);
		*hosts = mem_realloc(*hosts, (size_t)(n + addresses + 1) * sizeof **hosts);
		n += put_hosts(l, i, *hosts + n);
	}
	sort_hosts(*hosts, n);
	return n;
}

void nexthop_lookup_clear(struct nexthop_lookup *l)
{
	for (int i = 0; i < l->nanswer; i++) {
		resolve_free(&l->answer[i].resolve);
		credential_unref(l->answer[i].credential);
	}
	free(l->answer);
	sts_ask_free(&l->sts);
	*l = (struct nexthop_lookup){0};
}
