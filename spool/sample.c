/* SPDX-License-Identifier: ISC */
#include "spool/sample.h"

#include "base/keyed_hash.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/utf8.h"
#include "spool/op.h"

#include <stdlib.h>
#include <string.h>

enum { STEP_MESSAGES = 20000, STEP_READS = 32, STEP_RCPTS = 5000, RCPTS_MAX = 200000 };

/* Messages that have something in common, and how many there were. */
struct sample_group {
	uint64_t key;
	int64_t n, next; /* the one to read next */
	int last;	 /* row that stands for those that are not read; -1: none */
	UT_hash_handle hh;
};

struct sample *sample_new(void)
{
	struct sample *s = mem_zalloc(sizeof *s);
	s->dense = 1;
	s->most = 1;
	return s;
}

static void free_groups(struct sample *s)
{
	struct sample_group *g, *tmp;
	HASH_ITER(hh, s->groups, g, tmp)
	{
		HASH_DEL(s->groups, g);
		free(g);
	}
}

void sample_free(struct sample **sp)
{
	struct sample *s = *sp;
	if (!s)
		return;
	*sp = NULL;
	free_groups(s);
	for (int i = 0; i < s->n; i++)
		envelope_free(&s->row[i].envelope);
	for (int i = 0; i < s->ndomain; i++)
		free(s->domain[i]);
	free(s->row);
	free(s->domain);
	free(s);
}

static void add_domain(struct sample *s, char *domain)
{
	s->domain = mem_realloc(s->domain, ((size_t)s->ndomain + 1) * sizeof *s->domain);
	s->domain[s->ndomain++] = domain;
}

void sample_want_domain(struct sample *s, const char *domain)
{
	add_domain(s, name_key(domain));
}

/* --- which fit */

static void add_spelling(struct sample *of, int nkey, const char *name)
{
	char *key = name_key(name);
	bool wanted = false;
	for (int i = 0; i < nkey && !wanted; i++)
		wanted = strcmp(of->domain[i], key) == 0;
	if (wanted)
		add_domain(of, mem_strdup(name));
	free(key);
}

/* The index has domains as they were written. One in ASCII is its own key; the others, which are few, are looked
 * at once a question. */
static void add_spellings(const struct spool *s, struct sample *of)
{
	int nkey = of->ndomain;
	for (uint32_t d = 1; nkey > 0 && d < domains_end(&s->domains); d++)
		if (!utf8_is_ascii(domains_name(&s->domains, d)))
			add_spelling(of, nkey, domains_name(&s->domains, d));
	of->spelt = true;
}

/* A bit for each domain that the index knows: set for those that are wanted. */
static unsigned char *wanted_domains(const struct spool *s, const struct sample *of)
{
	unsigned char *wanted = mem_zalloc(domains_end(&s->domains) / 8 + 1);
	for (int i = 0; i < of->ndomain; i++) {
		uint32_t d = domains_find(&s->domains, of->domain[i]);
		if (d)
			wanted[d / 8] |= (unsigned char)(1u << d % 8);
	}
	return wanted;
}

static bool is_wanted(const unsigned char *wanted, uint32_t domain)
{
	return wanted[domain / 8] & 1u << domain % 8;
}

static bool is_candidate(const struct spool *s, const struct sample *of,
			 const unsigned char *wanted, const struct stub *stub)
{
	struct domain_count one, *to = &one;
	if (of->queues && !(of->queues & 1u << stub_queue(stub)))
		return false;
	if (of->site == 0 && of->ndomain == 0)
		return true;
	if (of->site && stub->state == STUB_DEFERRED && stub->site == of->site)
		return true;
	uint32_t n = of->ndomain > 0 ? domains_rcpts(&s->domains, stub, &to) : 0;
	for (uint32_t i = 0; i < n; i++)
		if (is_wanted(wanted, to[i].domain))
			return true;
	return of->senders && is_wanted(wanted, domains_sender(stub));
}

/* --- which are read */

/* Where it goes, as far as the index knows: its site, if it has one, or else the first of its domains. */
static uint64_t group_key(const struct spool *s, const struct sample *of, const struct stub *stub)
{
	struct domain_count one, *to = &one;
	uint64_t key = (uint64_t)stub->state << 56;
	if (!of->apart)
		return key;
	if (stub->state == STUB_DEFERRED && stub->site && stub->site != SPOOL_SITE_NAMES)
		return key | (uint64_t)1 << 48 | stub->site;
	return domains_rcpts(&s->domains, stub, &to) > 0 ? key | to[0].domain : key;
}

static struct sample_group *group_of(const struct spool *s, struct sample *of,
				     const struct stub *stub)
{
	uint64_t key = group_key(s, of, stub);
	struct sample_group *g;
	HASH_FIND(hh, of->groups, &key, sizeof key, g);
	if (g)
		return g;
	g = mem_zalloc(sizeof *g);
	g->key = key;
	g->last = -1;
	HASH_ADD(hh, of->groups, key, sizeof key, g);
	return g;
}

static void read_one(struct sample *of, struct sample_group *g, const struct stub *stub)
{
	struct envelope *e = fetch_envelope(stub);
	g->next = g->n + 1 + (of->dense && g->n >= of->first ? g->n / of->dense : 0);
	if (!e)
		return;
	if (stub->state == STUB_DEFERRED)
		e->due_ms = stub->due_ms;
	of->rcpts += e->nrcpt;
	of->row = mem_realloc(of->row, ((size_t)of->n + 1) * sizeof *of->row);
	of->row[of->n] = (struct sample_row){.queue = stub_queue(stub),
					     .envelope = e,
					     .site = stub->state == STUB_DEFERRED ? stub->site : 0};
	g->last = of->n++;
}

/* True: an envelope was read. */
static bool take_candidate(const struct spool *s, struct sample *of, const struct stub *stub)
{
	struct sample_group *g = group_of(s, of, stub);
	bool reads = g->n >= g->next;
	of->fit++;
	if (reads)
		read_one(of, g, stub);
	if (g->last >= 0)
		of->row[g->last].stands_for++;
	g->n++;
	return reads;
}

/* Envelopes of tens of thousands of recipients take memory, too. */
static bool is_full(const struct sample *of)
{
	return of->n >= of->most || of->rcpts >= RCPTS_MAX;
}

void sample_step(struct spool *s, struct spool_command *c)
{
	struct sample *of = c->sample;
	if (!of->spelt)
		add_spellings(s, of);
	unsigned char *wanted = wanted_domains(s, of);
	struct catalog_at at = catalog_from(&s->catalog, c->after + 1);
	const struct stub *stub = catalog_step(&s->catalog, &at);
	int64_t rcpts = of->rcpts;
	int reads = 0;
	for (int n = 0; stub && n < STEP_MESSAGES && reads < STEP_READS &&
			of->rcpts - rcpts < STEP_RCPTS && !is_full(of);
	     n++) {
		c->after = stub->id;
		if (is_candidate(s, of, wanted, stub))
			reads += take_candidate(s, of, stub);
		stub = catalog_step(&s->catalog, &at);
	}
	of->cut = is_full(of) && stub;
	c->more = stub && !of->cut;
	free(wanted);
}
