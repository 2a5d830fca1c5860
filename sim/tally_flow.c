/* SPDX-License-Identifier: ISC */
/* Counts of one flow, over all nodes. */
#include "sim/tally.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct tally_flow *tally_flow(struct tally *t, const char *name)
{
	struct tally_flow *f;
	HASH_FIND_STR(t->flows, name, f);
	if (f)
		return f;
	f = mem_zalloc(sizeof *f);
	f->name = mem_strdup(name);
	HASH_ADD_KEYPTR(hh, t->flows, f->name, strlen(f->name), f);
	return f;
}

void tally_flows_free(struct tally *t)
{
	hash_each (struct tally_flow, f, t->flows) {
		HASH_DEL(t->flows, f);
		free(f->waits.value);
		free(f->name);
		free(f);
	}
	free(t->fate);
}

void tally_fate(struct tally *t, const char *flow, const char *domain, int64_t came_ms,
		int64_t wait_ms)
{
	t->fate = mem_room(t->fate, (size_t)t->nfate, sizeof *t->fate);
	t->fate[t->nfate++] = (struct tally_fate){came_ms, wait_ms, tally_flow(t, flow),
						  tally_site_of(t, domain)};
}
