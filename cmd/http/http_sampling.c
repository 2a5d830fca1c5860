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

static const struct dest_site *site_of(const struct dest_command *c, const char *transport,
				       const char *key)
{
	for (int i = 0; i < c->nsite; i++)
		if (strcmp(c->site[i].name, c->name) == 0 &&
		    (!*transport || strcmp(c->site[i].transport, transport) == 0) &&
		    (!*key || strcmp(c->site[i].key, key) == 0))
			return &c->site[i];
	return NULL;
}

const struct dest_site *http_sampling_want_site(struct http_sampling *s,
						const struct dest_command *c, const char *transport,
						const char *key)
{
	const struct dest_site *found = site_of(c, transport, key);
	if (!found)
		return NULL;
	s->sample->site = found->number;
	for (int i = 0; !found->domains_seen && i < found->ndomain; i++)
		sample_want_domain(s->sample, found->domain[i]);
	return found;
}

bool http_sampling_wants_none(const struct dest_site *s)
{
	return s->number == 0 && (s->ndomain == 0 || s->domains_seen);
}

void http_sampling_fini(struct http_sampling *s)
{
	sample_free(&s->sample);
}
