/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/site_domains.h"

#include "base/keyed_hash.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM_FIRST = 16 };

/* Where it is, or would be. */
static uint64_t *slot_of(const struct site_domains *d, uint64_t hash)
{
	assert((uint32_t)d->n < d->room);
	assert((d->room & (d->room - 1)) == 0); /* it is a mask */
	uint32_t at = (uint32_t)hash & (d->room - 1);
	while (d->hash[at] != 0 && d->hash[at] != hash)
		at = (at + 1) & (d->room - 1);
	return &d->hash[at];
}

static void make_room(struct site_domains *d)
{
	uint64_t *old = d->hash;
	uint32_t nold = d->room;
	d->room = nold ? nold * 2 : ROOM_FIRST;
	d->hash = mem_zalloc(d->room * sizeof *d->hash);
	for (uint32_t i = 0; i < nold; i++)
		if (old[i] != 0)
			*slot_of(d, old[i]) = old[i];
	free(old);
}

void site_domains_add(struct site_domains **dp, const char *domain)
{
	uint64_t hash = keyed_hash(domain, strlen(domain)) | 1;
	if (!*dp)
		*dp = mem_zalloc(sizeof **dp);
	struct site_domains *d = *dp;
	if ((uint32_t)d->n * 2 >= d->room && d->n < SITE_DOMAINS_MOST)
		make_room(d);
	uint64_t *slot = slot_of(d, hash);
	if (*slot == hash || d->n == SITE_DOMAINS_MOST)
		return;
	*slot = hash;
	d->n++;
	if (d->nname < SITE_DOMAINS_NAMED)
		d->name[d->nname++] = mem_strdup(domain);
	assert(d->nname <= d->n && d->n <= SITE_DOMAINS_MOST);
}

void site_domains_free(struct site_domains **dp)
{
	struct site_domains *d = mem_take(dp);
	if (!d)
		return;
	for (int i = 0; i < d->nname; i++)
		free(d->name[i]);
	free(d->hash);
	free(d);
}
