/* SPDX-License-Identifier: ISC */
/* Counts of one provider over time, of all nodes together. */
#include "sim/tally.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static struct tally_provider *find_provider(struct tally *t, const char *key)
{
	struct tally_provider *p;
	HASH_FIND_STR(t->providers, key, p);
	if (p)
		return p;
	p = mem_zalloc(sizeof *p);
	p->key = mem_strdup(key);
	HASH_ADD_KEYPTR(hh, t->providers, p->key, strlen(p->key), p);
	return p;
}

void tally_provider(struct tally *t, const char *key, const struct sample *sample)
{
	struct tally_provider *p = find_provider(t, key);
	struct sample *last = p->nsample > 0 ? &p->sample[p->nsample - 1] : NULL;
	if (t->sample_ms > 0 && sample->at_ms % t->sample_ms != 0)
		return;
	if (last && last->at_ms == sample->at_ms) {
		last->shut |= sample->shut;
		last->pace += sample->pace;
		return;
	}
	p->sample = mem_room(p->sample, (size_t)p->nsample, sizeof *p->sample);
	p->sample[p->nsample++] = *sample;
}

void tally_providers_free(struct tally *t)
{
	hash_each (struct tally_provider, p, t->providers) {
		HASH_DEL(t->providers, p);
		free(p->sample);
		free(p->key);
		free(p);
	}
}
