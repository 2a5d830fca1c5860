/* SPDX-License-Identifier: ISC */
#include "dns/lookup.h"

#include "base/address.h"
#include "base/mem.h"
#include "base/netlist.h"
#include "dns/dnsname.h"
#include "dns/mx.h"
#include "dns/tlsa.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lookups {
	struct questions *questions;
	struct ourself *self;
	bool lab;
	struct netlist near;
	uint64_t chance;
	struct list all;
	int n;
};

/* One address question of a lookup. */
struct wanted {
	struct asker asker;
	struct lookup *lookup;
	const char *name; /* its target's */
	enum answer_type type;
	struct answer **to;
};

struct lookup {
	struct list link;
	struct lookups *all;
	struct resolve *r;
	struct mx mx;
	struct wanted mx_wanted;
	int waiting, nwanted;
	struct wanted *wanted;	 /* A and AAAA of each target */
	struct verdict *failure; /* of the targets so far */
	int nsearch;
	struct tlsa_search *search; /* of each host */
};

struct lookups *lookups_new(struct questions *questions, const struct conf *conf,
			    struct ourself *self, uint64_t seed)
{
	struct lookups *all = mem_zalloc(sizeof *all);
	all->questions = questions;
	all->chance = seed;
	list_init(&all->all);
	lookups_reload(all, conf, self);
	return all;
}

static void lookup_free(struct lookup *l)
{
	question_withdraw(&l->mx_wanted.asker);
	for (int i = 0; i < l->nwanted; i++)
		question_withdraw(&l->wanted[i].asker);
	for (int i = 0; i < l->nsearch; i++)
		tlsa_search_withdraw(&l->search[i]);
	list_remove(&l->link);
	assert(l->all->n > 0);
	l->all->n--;
	mx_fini(&l->mx);
	verdict_unref(l->failure);
	resolve_free(&l->r);
	free(l->wanted);
	free(l->search);
	free(l);
}

void lookups_free(struct lookups **ap)
{
	struct lookups *all = *ap;
	if (!all)
		return;
	list_each (link, tmp, &all->all)
		lookup_free(list_entry(link, struct lookup, link));
	assert(list_empty(&all->all) && all->n == 0);
	ourself_free(&all->self);
	netlist_fini(&all->near);
	free(all);
	*ap = NULL;
}

static void post_back(struct resolve *r, struct verdict *failure)
{
	assert(!r->failure && (!failure || r->nhost == 0));
	r->failure = failure;
	r->note.type = RESOLVE_ANSWER;
	loop_post(r->reply_to, &r->note);
}

static bool is_bogus(const struct answer *a)
{
	return a && a->security == RESOLVE_BOGUS;
}

static enum resolve_security security_of_host(const struct lookup *l, const struct resolve *r)
{
	const struct mx_target *t = l->mx.target;
	if (r->nhost > 0)
		return r->host[0].security;
	return l->mx.ntarget > 0 && (is_bogus(t->a) || is_bogus(t->aaaa)) ? RESOLVE_BOGUS
									  : RESOLVE_INDETERMINATE;
}

static void finish_lookup(struct lookup *l, struct verdict *failure)
{
	struct resolve *r = l->r;
	assert(l->waiting == 0);
	assert(failure || r->nhost > 0 || (r->kind != RESOLVE_MX && r->kind != RESOLVE_HOST));
	l->r = NULL;
	if (r->kind == RESOLVE_MX)
		r->security = l->mx.security;
	else if (r->kind == RESOLVE_HOST)
		r->security = security_of_host(l, r);
	lookup_free(l);
	post_back(r, failure);
}

static void on_found(void *owner)
{
	struct lookup *l = owner;
	assert(l->waiting > 0);
	if (--l->waiting == 0)
		finish_lookup(l, NULL);
}

/* Of all hosts at once. */
static void search_tlsa(struct lookup *l)
{
	struct resolve *r = l->r;
	assert(r->nhost > 0 && !l->search && l->waiting == 0);
	l->search = mem_zalloc((size_t)r->nhost * sizeof *l->search);
	l->waiting = 1;
	for (int i = 0; i < r->nhost; i++) {
		struct tlsa_search *s = &l->search[l->nsearch++];
		*s = (struct tlsa_search){.questions = l->all->questions,
					  .asker.line = r->line,
					  .host = &r->host[i],
					  .port = r->port,
					  .hop = {l->mx.domain, l->mx.canonical},
					  .found = on_found,
					  .owner = l};
		l->waiting++;
		if (!tlsa_search_begin(s))
			l->waiting--;
	}
	on_found(l);
}

/* Who could have forged the MX records has chosen the hosts: what these prove is worth nothing (RFC 7672
 * 2.2.1). DIFFERS from POSTFIX, which has them prove it all the same. */
static bool counts_tlsa(const struct lookup *l)
{
	return l->r->dane && (l->r->kind == RESOLVE_HOST || l->mx.security == RESOLVE_SECURE);
}

static void have_hosts(struct lookup *l)
{
	if (counts_tlsa(l))
		search_tlsa(l);
	else
		finish_lookup(l, NULL);
}

/* The first that was said, unless one that came later may pass. */
static void keep_failure(struct lookup *l, struct verdict *failure)
{
	if (l->failure && failure->class != VERDICT_DEFERRED) {
		verdict_unref(failure);
		return;
	}
	verdict_unref(l->failure);
	l->failure = failure;
}

static void note_heard(struct lookup *l, const struct asker *asker, const struct answer *answer)
{
	l->r->heard |= !asker->known && answer->status != ANSWER_FAILED;
}

/* Name servers that know no AAAA, or those of a host of lesser preference, may be silent: each look-up would wait for them, and without need. */
static void keep_failures(const struct lookup *l)
{
	for (int i = 0; i < l->nwanted; i++) {
		const struct wanted *w = &l->wanted[i];
		if (!w->asker.known)
			questions_keep_failure(l->all->questions, w->name, w->type, *w->to);
	}
}

static void want_addresses(struct lookup *);

static void have_addresses(struct lookup *l)
{
	struct verdict *failure = mx_hosts(&l->mx, l->r);
	if (!failure) {
		keep_failures(l);
		have_hosts(l);
		return;
	}
	keep_failure(l, failure);
	if (mx_next(&l->mx))
		want_addresses(l);
	else
		finish_lookup(l, verdict_ref(l->failure));
}

static void on_address(struct asker *asker, struct answer *answer)
{
	struct wanted *w = (struct wanted *)asker;
	struct lookup *l = w->lookup;
	assert(!*w->to);
	*w->to = answer_ref(answer);
	note_heard(l, asker, answer);
	assert(l->waiting > 0);
	if (--l->waiting == 0)
		have_addresses(l);
}

static struct answer *make_answer(const union address *address)
{
	struct answer *a = answer_failed(NULL);
	a->status = address ? ANSWER_RECORDS : ANSWER_NODATA;
	if (address) {
		a->record = mem_zalloc(sizeof *a->record);
		a->record[a->nrecord++].address = *address;
	}
	return a;
}

/* RFC 6761 6.3: the name of this machine is not looked up. */
static void give_localhost(struct mx_target *t)
{
	union address in, in6;
	dnsname_literal("127.0.0.1", true, &in);
	dnsname_literal("::1", true, &in6);
	t->a = make_answer(&in);
	t->aaaa = make_answer(&in6);
}

static void want_answer(struct lookup *l, const char *name, enum answer_type type,
			struct answer **to)
{
	assert(l->nwanted < 2 * l->mx.ntarget);
	struct wanted *w = &l->wanted[l->nwanted++];
	*w = (struct wanted){.lookup = l,
			     .name = name,
			     .type = type,
			     .to = to,
			     .asker.answered = on_address,
			     .asker.line = l->r->line};
	list_init(&w->asker.link);
	l->waiting++;
	question_ask(l->all->questions, name, type, &w->asker);
}

/* Both families of all targets at once. */
static void want_addresses(struct lookup *l)
{
	assert(l->waiting == 0 && l->mx.ntarget > 0);
	free(l->wanted);
	l->nwanted = 0;
	l->wanted = mem_alloc(2 * (size_t)l->mx.ntarget * sizeof *l->wanted);
	for (int i = 0; i < l->mx.ntarget; i++) {
		struct mx_target *t = &l->mx.target[i];
		if (dnsname_localhost(t->name)) {
			give_localhost(t);
			continue;
		}
		want_answer(l, t->name, ANSWER_A, &t->a);
		want_answer(l, t->name, ANSWER_AAAA, &t->aaaa);
	}
	if (l->waiting == 0)
		have_addresses(l);
}

static void on_mx(struct asker *asker, struct answer *answer)
{
	struct lookup *l = ((struct wanted *)asker)->lookup;
	note_heard(l, asker, answer);
	assert(l->r->kind == RESOLVE_MX && l->nwanted == 0);
	struct verdict *failure = mx_targets(&l->mx, answer);
	if (failure)
		finish_lookup(l, failure);
	else
		want_addresses(l);
}

static void begin_mx(struct lookup *l)
{
	if (dnsname_localhost(l->mx.domain)) {
		struct answer *none = make_answer(NULL);
		l->mx_wanted.asker.known = true;
		on_mx(&l->mx_wanted.asker, none);
		answer_unref(none);
		return;
	}
	question_ask(l->all->questions, l->mx.domain, ANSWER_MX, &l->mx_wanted.asker);
}

static void begin_literal(struct lookup *l, const union address *address)
{
	char text[INET6_ADDRSTRLEN];
	bool v4 = address->sa.sa_family == AF_INET;
	inet_ntop(address->sa.sa_family,
		  v4 ? (const void *)&address->in.sin_addr : &address->in6.sin6_addr, text,
		  sizeof text);
	struct verdict *failure = mx_only(&l->mx, text);
	if (!failure) {
		l->mx.target[0].a = make_answer(v4 ? address : NULL);
		l->mx.target[0].aaaa = make_answer(v4 ? NULL : address);
		failure = mx_hosts(&l->mx, l->r);
	}
	finish_lookup(l, failure);
}

static void begin_host(struct lookup *l)
{
	struct verdict *failure = mx_only(&l->mx, l->mx.domain);
	if (failure)
		finish_lookup(l, failure);
	else
		want_addresses(l);
}

/* Kinds of records of the name itself that are asked for. */
static const struct record_kind {
	enum answer_type type;
	const char *word;
} record_kinds[] = {
	[RESOLVE_TLSA] = {ANSWER_TLSA, "TLSA"},
	[RESOLVE_ALIAS] = {ANSWER_CNAME, "CNAME"},
	[RESOLVE_TXT] = {ANSWER_TXT, "TXT"},
};

static struct verdict *no_record(const struct lookup *l, const struct answer *a)
{
	return verdict_printf(VERDICT_DEFERRED, 451, "4.4.3", NULL,
			      "look-up of the %s record of %s failed: %s",
			      record_kinds[l->r->kind].word, l->mx.domain, a->why);
}

/* A copy: the answer is shared. */
static void take_tlsa(struct resolve *r, const struct answer *a)
{
	r->tlsa = mem_zalloc((size_t)a->nrecord * sizeof *r->tlsa);
	for (int i = 0; i < a->nrecord; i++) {
		struct resolve_tlsa *to = &r->tlsa[r->ntlsa++];
		*to = a->record[i].tlsa;
		to->data = mem_alloc(to->len ? to->len : 1);
		memcpy(to->data, a->record[i].tlsa.data, to->len);
	}
}

static void take_txt(struct resolve *r, const struct answer *a)
{
	r->txt = mem_zalloc((size_t)a->nrecord * sizeof *r->txt);
	for (int i = 0; i < a->nrecord; i++)
		r->txt[r->ntxt++] = mem_strdup(a->record[i].txt);
}

static void on_record(struct asker *asker, struct answer *answer)
{
	struct lookup *l = ((struct wanted *)asker)->lookup;
	struct resolve *r = l->r;
	r->security = answer->security;
	if (answer->status == ANSWER_RECORDS && r->kind == RESOLVE_TLSA)
		take_tlsa(r, answer);
	else if (answer->status == ANSWER_RECORDS && r->kind == RESOLVE_TXT)
		take_txt(r, answer);
	else if (answer->status == ANSWER_RECORDS)
		r->alias = mem_strdup(answer->record[0].target);
	finish_lookup(l, answer->status == ANSWER_FAILED ? no_record(l, answer) : NULL);
}

static void begin_record(struct lookup *l, enum answer_type type)
{
	l->mx_wanted.asker.answered = on_record;
	question_ask(l->all->questions, l->mx.domain, type, &l->mx_wanted.asker);
}

static struct lookup *lookup_new(struct lookups *all, struct resolve *r, const char *name)
{
	struct lookup *l = mem_zalloc(sizeof *l);
	l->all = all;
	l->r = r;
	l->mx_wanted = (struct wanted){.lookup = l, .asker.answered = on_mx, .asker.line = r->line};
	list_init(&l->mx_wanted.asker.link);
	list_init(&l->link);
	list_append(&all->all, &l->link);
	all->n++;
	mx_init(&l->mx, name, all->self, &all->chance);
	l->mx.trusted = r->trusted;
	l->mx.lab = all->lab;
	l->mx.near = &all->near;
	return l;
}

/* Nobody else may have us connect to a socket of this machine. */
static bool is_socket(const struct resolve *r, union address *address)
{
	return r->trusted && r->kind == RESOLVE_HOST && address_parse_unix(r->name, address);
}

static void answer_socket(struct resolve *r, const union address *address)
{
	r->host = mem_zalloc(sizeof *r->host);
	r->nhost = 1;
	r->host->name = mem_strdup(r->name);
	r->host->naddress = 1;
	r->host->address[0] = *address;
	post_back(r, NULL);
}

/* RFC 6698 3: _25._tcp in front of the host. */
static bool name_to_ask(const struct resolve *r, char name[DNSNAME_SIZE])
{
	char text[DNSNAME_SIZE + 16];
	if (r->kind != RESOLVE_TLSA)
		return dnsname_from_text(r->name, name);
	int n = snprintf(text, sizeof text, "_%d._tcp.%s", r->port, r->name);
	return n > 0 && (size_t)n < sizeof text && dnsname_from_text(text, name);
}

/* Only what will stay so until the cache forgets it: anything else takes questions, or depends on where we are. */
static void answer_known(struct lookups *all, struct resolve *r)
{
	char name[DNSNAME_SIZE];
	struct mx mx;
	struct verdict *failure = NULL;
	struct answer *known = dnsname_from_text(r->name, name)
				       ? questions_known(all->questions, name, ANSWER_MX)
				       : NULL;
	if (known && (known->status == ANSWER_NXDOMAIN || answer_null_mx(known))) {
		mx_init(&mx, name, all->self, &all->chance);
		failure = mx_targets(&mx, known);
		mx_fini(&mx);
	}
	answer_unref(known);
	post_back(r, failure);
}

void lookup_start(struct lookups *all, struct resolve *r)
{
	union address address;
	char name[DNSNAME_SIZE] = "";
	assert(!r->host && !r->failure); /* it is a question */
	if (r->known) {
		answer_known(all, r);
		return;
	}
	if (is_socket(r, &address)) {
		answer_socket(r, &address);
		return;
	}
	assert((size_t)r->kind < sizeof record_kinds / sizeof record_kinds[0]);
	const struct record_kind *records =
		record_kinds[r->kind].word ? &record_kinds[r->kind] : NULL;
	bool literal = !records && dnsname_literal(r->name, r->kind == RESOLVE_HOST, &address);
	if (all->n >= LOOKUPS_MAX) {
		post_back(r,
			  verdict_printf(VERDICT_DEFERRED, 451, "4.4.3", NULL,
					 "look-up of %s: too many look-ups are waiting", r->name));
		return;
	}
	if (!literal && !name_to_ask(r, name)) {
		post_back(r, verdict_printf(VERDICT_FAILED, 550, "5.1.2", NULL,
					    "%s is not the name of a domain", r->name));
		return;
	}
	struct lookup *l = lookup_new(all, r, literal ? r->name : name);
	if (records)
		begin_record(l, records->type);
	else if (literal)
		begin_literal(l, &address);
	else if (r->kind == RESOLVE_HOST)
		begin_host(l);
	else
		begin_mx(l);
}

void lookups_reload(struct lookups *all, const struct conf *conf, struct ourself *self)
{
	struct ourself *old = all->self;
	all->self = self;
	all->lab = conf->dns.allow_loopback;
	netlist_fini(&all->near);
	netlist_init(&all->near, &conf->dns.allow_private, NULL);
	list_each (link, tmp, &all->all)
		list_entry(link, struct lookup, link)->mx.self = all->self;
	ourself_free(&old);
}
