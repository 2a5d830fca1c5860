/* SPDX-License-Identifier: ISC */
#include "cmd/http/http_sampling.h"

#include "spool/spool.h"

static void take_part(struct asker *asker, struct note *note)
{
	struct http_look *k = (struct http_look *)asker;
	struct spool_command *c = (struct spool_command *)note;
	if (http_look_back(k)) {
		struct http_sampling *s = k->own;
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
	c->sample = s->sample;
	s->sample = NULL;
	c->after = s->after;
	http_look_post(k, spool_loop(k->http->spool), &c->note, take_part);
}

void http_sampling_fini(struct http_sampling *s)
{
	sample_free(&s->sample);
}
