/* SPDX-License-Identifier: ISC */
#include "dns/mx.h"

#include "base/mem.h"
#include "base/netlist.h"
#include "base/verdict.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void mx_init(struct mx *m, const char *domain, const struct ourself *self, uint64_t *chance)
{
	assert(strlen(domain) < sizeof m->domain);
	*m = (struct mx){.self = self, .chance = chance};
	strncpy(m->domain, domain, sizeof m->domain - 1);
}

static void free_targets(struct mx *m, int from, int end)
{
	for (int i = from; i < end; i++) {
		free(m->target[i].name);
		answer_unref(m->target[i].a);
		answer_unref(m->target[i].aaaa);
	}
}

/* And the rest, which is preferred even less. */
static void drop_targets(struct mx *m, int from)
{
	assert(from <= m->ntarget);
	free_targets(m, from, m->ntarget + m->nrest);
	m->ntarget = from;
	m->nrest = 0;
}

void mx_fini(struct mx *m)
{
	drop_targets(m, 0);
	free(m->target);
	free(m->canonical);
	m->target = NULL;
	m->canonical = NULL;
}

/* Weyl's sequence, mixed: small, and good enough to spread load. */
uint64_t mx_chance(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static int random_below(struct mx *m, int n)
{
	assert(n > 0);
	return (int)(mx_chance(m->chance) % (uint64_t)n);
}

static void shuffle_targets(struct mx *m, struct mx_target *t, int n)
{
	for (int i = n - 1; i > 0; i--) {
		int j = random_below(m, i + 1);
		struct mx_target swap = t[i];
		t[i] = t[j];
		t[j] = swap;
	}
}

/* RFC 5321 5.1: equal preference is equal load. */
static void shuffle_equals(struct mx *m)
{
	for (int first = 0, i = 1; i <= m->ntarget; i++) {
		if (i < m->ntarget && m->target[i].preference == m->target[first].preference)
			continue;
		shuffle_targets(m, m->target + first, i - first);
		first = i;
	}
}

/* Leave out everything from this preference on: those hosts would send the mail to us. */
static void discard_from(struct mx *m, uint16_t preference)
{
	int keep = 0;
	while (keep < m->ntarget && m->target[keep].preference < preference)
		keep++;
	drop_targets(m, keep);
}

static struct verdict *loops_back(const struct mx *m)
{
	return verdict_printf(VERDICT_FAILED, 550, "5.4.6", NULL,
			      "mail for %s loops back to myself", m->domain);
}

static bool has_target(const struct mx *m, const char *name)
{
	for (int i = 0; i < m->ntarget; i++)
		if (strcmp(m->target[i].name, name) == 0)
			return true;
	return false;
}

static void add_target(struct mx *m, const char *name, uint16_t preference)
{
	m->target[m->ntarget++] =
		(struct mx_target){.name = mem_strdup(name), .preference = preference};
}

static void discard_own_name(struct mx *m)
{
	for (int i = 0; i < m->ntarget && !m->trusted; i++)
		if (ourself_named(m->self, m->target[i].name))
			discard_from(m, m->target[i].preference);
}

static struct verdict *no_address(const struct mx *m)
{
	return verdict_printf(VERDICT_FAILED, 550, "5.4.4", NULL,
			      "no mail host for %s has an address", m->domain);
}

/* As many as are looked up at once, of the n that are left. */
static void take_targets(struct mx *m, int n)
{
	assert(n >= 0);
	m->ntarget = n < MX_TARGETS_MAX ? n : MX_TARGETS_MAX;
	m->nrest = n - m->ntarget;
}

static struct verdict *targets_from(struct mx *m, const struct answer *answer)
{
	assert(!m->target);
	m->target = mem_zalloc((size_t)answer->nrecord * sizeof *m->target);
	for (int i = 0; i < answer->nrecord; i++) {
		const struct answer_record *r = &answer->record[i];
		if (r->target && r->target[0] && !has_target(m, r->target))
			add_target(m, r->target, r->preference);
	}
	if (m->ntarget == 0)
		return no_address(m);
	shuffle_equals(m);
	discard_own_name(m);
	take_targets(m, m->ntarget);
	return m->ntarget == 0 ? loops_back(m) : NULL;
}

bool mx_next(struct mx *m)
{
	int n = m->ntarget;
	if (m->nrest == 0)
		return false;
	assert(n > 0); /* there is a rest only behind some */
	free_targets(m, 0, n);
	memmove(m->target, m->target + n, (size_t)m->nrest * sizeof *m->target);
	take_targets(m, m->nrest);
	return true;
}

struct verdict *mx_targets(struct mx *m, const struct answer *answer)
{
	assert(m->ntarget == 0 && !m->canonical);
	m->security = answer->security;
	m->canonical = answer->canonical ? mem_strdup(answer->canonical) : NULL;
	switch (answer->status) {
	case ANSWER_RECORDS:
		if (answer_null_mx(answer))
			return verdict_printf(VERDICT_FAILED, 556, "5.1.10", NULL,
					      "%s does not accept mail (null MX)", m->domain);
		return targets_from(m, answer);
	case ANSWER_NODATA:
		return mx_only(m, m->domain);
	case ANSWER_NXDOMAIN:
		return verdict_printf(VERDICT_FAILED, 550, "5.1.2", NULL,
				      "the domain %s does not exist", m->domain);
	case ANSWER_ALIAS:
	case ANSWER_FAILED:
		break;
	}
	return verdict_printf(VERDICT_DEFERRED, 451, "4.4.3", NULL,
			      "look-up of the mail hosts for %s failed: %s", m->domain,
			      answer->why ? answer->why : "no answer");
}

struct verdict *mx_only(struct mx *m, const char *host)
{
	assert(!m->target);
	m->target = mem_zalloc(sizeof *m->target);
	add_target(m, host, 0);
	discard_own_name(m);
	return m->ntarget == 0 ? loops_back(m) : NULL;
}

/* A loopback address is not taken for ours: it is unusable as it is, which costs only that host;
 * and in a laboratory everything is 127.0.0.something, also what is not ourselves. */
static bool has_own_address(const struct mx *m, const struct answer *answer)
{
	for (int i = 0; i < answer->nrecord; i++) {
		const union address *a = &answer->record[i].address;
		enum reach reach = ourself_reach(a);
		if ((reach == REACH_GLOBAL || reach == REACH_PRIVATE) && ourself_at(m->self, a))
			return true;
	}
	return false;
}

static void discard_own_address(struct mx *m)
{
	for (int i = 0; i < m->ntarget && !m->trusted; i++)
		if (has_own_address(m, m->target[i].a) || has_own_address(m, m->target[i].aaaa))
			discard_from(m, m->target[i].preference);
}

/* Is it in a network that allow_private names, as it stands or as what it means? */
static bool is_near(const struct mx *m, const union address *a)
{
	union address meant;
	ourself_meant(a, &meant);
	return m->near && (netlist_match(m->near, a) || netlist_match(m->near, &meant));
}

static bool is_usable(const struct mx *m, const struct answer_record *r)
{
	if (m->trusted)
		return true;
	switch (ourself_reach(&r->address)) {
	case REACH_GLOBAL:
		return true;
	case REACH_PRIVATE:
		return is_near(m, &r->address);
	case REACH_LOCAL:
		return m->lab;
	case REACH_NONE:
		break;
	}
	return false;
}

/* The usable addresses of an answer in random order. */
static int pick_addresses(struct mx *m, const struct answer *answer, union address *to)
{
	int n = 0;
	assert(answer->nrecord <= ANSWER_ADDRESS_MAX); /* to has room for so many */
	for (int i = 0; i < answer->nrecord; i++)
		if (is_usable(m, &answer->record[i]))
			to[n++] = answer->record[i].address;
	for (int i = n - 1; i > 0; i--) {
		int j = random_below(m, i + 1);
		union address swap = to[i];
		to[i] = to[j];
		to[j] = swap;
	}
	return n;
}

/* RFC 8305 4: the families take turns, IPv6 first. */
static void make_host(struct mx *m, const struct mx_target *t, struct resolve_host *to)
{
	union address in6[ANSWER_ADDRESS_MAX], in[ANSWER_ADDRESS_MAX];
	int n6 = pick_addresses(m, t->aaaa, in6), n4 = pick_addresses(m, t->a, in);
	*to = (struct resolve_host){.preference = t->preference};
	for (int i = 0; i < n6 || i < n4; i++) {
		if (i < n6 && to->naddress < RESOLVE_ADDRESSES_MAX)
			to->address[to->naddress++] = in6[i];
		if (i < n4 && to->naddress < RESOLVE_ADDRESSES_MAX)
			to->address[to->naddress++] = in[i];
	}
}

static bool is_private(const struct answer *answer)
{
	for (int i = 0; i < answer->nrecord; i++)
		if (ourself_reach(&answer->record[i].address) == REACH_PRIVATE)
			return true;
	return false;
}

/* No target is usable: the worst that may pass decides, else what there was instead. */
static struct verdict *nothing_usable(const struct mx *m)
{
	bool local = false, private = false;
	for (int i = 0; i < m->ntarget; i++) {
		const struct mx_target *t = &m->target[i];
		const struct answer *failed = t->a->status == ANSWER_FAILED ? t->a : t->aaaa;
		if (failed->status == ANSWER_FAILED)
			return verdict_printf(VERDICT_DEFERRED, 451, "4.4.3", NULL,
					      "look-up of %s, a mail host for %s, failed: %s",
					      t->name, m->domain, failed->why);
		local |= t->a->nrecord > 0 || t->aaaa->nrecord > 0;
		private |= is_private(t->a) || is_private(t->aaaa);
	}
	if (private)
		return verdict_printf(VERDICT_FAILED, 550, "5.4.4", NULL,
				      "the mail hosts of %s have only private addresses",
				      m->domain);
	if (local)
		return verdict_printf(VERDICT_FAILED, 550, "5.4.6", NULL,
				      "mail for %s loops back to myself: its mail hosts have "
				      "only local addresses",
				      m->domain);
	return no_address(m);
}

/* Of both families, where both were answered: they have the same owner. */
static enum resolve_security security_of(const struct mx_target *t)
{
	if (t->a->status == ANSWER_FAILED)
		return t->aaaa->security;
	if (t->aaaa->status == ANSWER_FAILED)
		return t->a->security;
	return resolve_weaker(t->a->security, t->aaaa->security);
}

static char *canonical_of(const struct mx_target *t)
{
	const char *name = t->a->canonical ? t->a->canonical : t->aaaa->canonical;
	return name ? mem_strdup(name) : NULL;
}

struct verdict *mx_hosts(struct mx *m, struct resolve *to)
{
	struct resolve_host host;
	assert(to->nhost == 0);
	discard_own_address(m);
	if (m->ntarget == 0)
		return loops_back(m);
	if (!to->host)
		to->host = mem_zalloc(RESOLVE_HOSTS_MAX * sizeof *to->host);
	for (int i = 0; i < m->ntarget && to->nhost < RESOLVE_HOSTS_MAX; i++) {
		make_host(m, &m->target[i], &host);
		if (host.naddress == 0)
			continue;
		host.name = mem_strdup(m->target[i].name);
		host.security = security_of(&m->target[i]);
		host.canonical = canonical_of(&m->target[i]);
		to->host[to->nhost++] = host;
	}
	return to->nhost == 0 ? nothing_usable(m) : NULL;
}
