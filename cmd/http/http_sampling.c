/* SPDX-License-Identifier: ISC */
#include "cmd/http/http_sampling.h"

#include "spool/spool.h"

#include <assert.h>
#include <string.h>

static void take_part(struct asker *asker, struct note *note)
{
	struct http_look *k = (struct http_look *)asker;
	struct spool_command *c = (struct spool_command *)note;
	if (http_look_back(k)) {
		struct http_sampling *s = k->own;
		assert(!s->sample && c->sample);
		s->sample = c->sample;
		c->sample = NULL;
		s->after = c->after;
		if (c->more)
			http_sampling_ask(k);
		else
			s->sampled(k);
	}
	spool_command_free(&c);
}

void http_sampling_ask(struct http_look *k)
{
	struct http_sampling *s = k->own;
	struct spool_command *c = spool_command_new(SPOOL_SAMPLE, k->http->loop, k);
	assert(s->sample);
	c->sample = s->sample;
	s->sample = NULL;
	c->after = s->after;
	http_look_post(k, spool_loop(k->http->spool), &c->note, take_part);
}

static const struct dest_site *find_site(const struct dest_command *c,
					 const struct http_sampling *s)
{
	for (int i = 0; i < c->nsite; i++)
		if (strcmp(c->site[i].name, c->name) == 0 &&
		    (!*s->transport || strcmp(c->site[i].transport, s->transport) == 0) &&
		    (!*s->key || strcmp(c->site[i].key, s->key) == 0))
			return &c->site[i];
	return NULL;
}

/* The queue knows of no mail for it, and would be asked for all mail. */
static bool wants_none(const struct dest_site *site)
{
	return site->number == 0 && (site->ndomain == 0 || site->domains_seen);
}

static void sample_site(struct http_look *k, const struct dest_site *site)
{
	struct http_sampling *s = k->own;
	assert(s->sample);
	s->sample->site = site->number;
	for (int i = 0; !site->domains_seen && i < site->ndomain; i++)
		sample_want_domain(s->sample, site->domain[i]);
	if (s->found)
		s->found(k, site);
	if (wants_none(site))
		s->sampled(k);
	else
		http_sampling_ask(k);
}

static void take_site(struct asker *asker, struct note *note)
{
	struct http_look *k = (struct http_look *)asker;
	struct dest_command *c = (struct dest_command *)note;
	if (http_look_back(k)) {
		const struct dest_site *site = find_site(c, k->own);
		if (site)
			sample_site(k, site);
		else
			http_look_fail(k, MHD_HTTP_NOT_FOUND, "no such site is known");
	}
	dest_command_free(&c);
}

void http_sampling_of_site(struct http_look *k, const char *site, const char *transport,
			   const char *key)
{
	struct http_sampling *s = k->own;
	s->transport = transport;
	s->key = key;
	http_look_post(k, k->http->qmgr,
		       &dest_command_new(ORDER_LIST, site, k->http->loop, k)->note, take_site);
}

void http_sampling_fini(struct http_sampling *s)
{
	sample_free(&s->sample);
}
