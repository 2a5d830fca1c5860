/* SPDX-License-Identifier: ISC */
#include "spool/parked.h"

#include "base/clock.h"
#include "base/mem.h"
#include "spool/spool_core.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct parked_site {
	uint32_t waiting, parked; /* deferred messages of it; those of them that wait for it */
	uint64_t oldest;	  /* none with a smaller id waits for it */
};

void parked_init(struct parked *p)
{
	*p = (struct parked){0};
	note_queue_init(&p->orders);
}

void parked_fini(struct parked *p)
{
	for (struct note *note; (note = note_queue_take(&p->orders));)
		free(note);
	free(p->site);
}

static void grow_sites(struct parked *p, uint32_t nsite)
{
	if (nsite <= p->nsite)
		return;
	p->site = mem_realloc(p->site, nsite * sizeof *p->site);
	memset(p->site + p->nsite, 0, (nsite - p->nsite) * sizeof *p->site);
	p->nsite = nsite;
}

void parked_enter(struct parked *p, struct stub *stub, uint16_t site, bool parked)
{
	assert(stub->state == STUB_DEFERRED && !stub->site && !stub->parked);
	assert(site <= SPOOL_SITE_MAX && (site || !parked));
	if (!site)
		return;
	grow_sites(p, site + 1u);
	struct parked_site *of = &p->site[site];
	stub->site = (uint32_t)site & SPOOL_SITE_MAX;
	stub->parked = parked;
	if (parked && (of->parked == 0 || stub->id < of->oldest))
		of->oldest = stub->id;
	of->waiting++;
	of->parked += parked;
}

void parked_end(struct parked *p, struct stub *stub)
{
	if (!stub->parked)
		return;
	assert(stub->site < p->nsite);
	assert(stub->state == STUB_DEFERRED);
	assert(p->site[stub->site].parked > 0);
	p->site[stub->site].parked--;
	stub->parked = false;
}

void parked_leave(struct parked *p, struct stub *stub)
{
	parked_end(p, stub);
	if (!stub->site)
		return;
	assert(stub->site < p->nsite);
	assert(p->site[stub->site].waiting > p->site[stub->site].parked);
	p->site[stub->site].waiting--;
	stub->site = 0;
}

void parked_order(struct parked *p, struct spool_unpark *u)
{
	assert(u->site > 0 && u->site <= SPOOL_SITE_MAX);
	note_queue_put(&p->orders, &u->note);
}

/* The catalog stands in order of age, so that the oldest are met first. */
static void unpark_oldest(struct spool *s, uint16_t site, uint32_t most)
{
	struct parked_site *of = &s->parked.site[site];
	const int64_t now_ms = clock_wall_ms();
	struct catalog_at at = catalog_from(&s->catalog, of->oldest);
	while (most > 0 && of->parked > 0) {
		struct stub *stub = catalog_step(&s->catalog, &at);
		assert(stub);
		if (!stub->parked || stub->site != site)
			continue;
		parked_end(&s->parked, stub);
		stub_set_due(stub, now_ms);
		due_moved(&s->deferred, stub);
		of->oldest = stub->id + 1;
		most--;
	}
}

static void answer_unpark(struct spool *s, struct spool_unpark *u)
{
	struct parked_site none = {0}, *of = &none;
	if (u->site < s->parked.nsite)
		of = &s->parked.site[u->site];
	if (of->parked > 0)
		unpark_oldest(s, u->site, u->most);
	assert(of->parked <= of->waiting);
	u->parked = of->parked;
	u->waiting = of->waiting;
	loop_post(s->qmgr, &u->note);
}

void parked_run(struct spool *s)
{
	for (struct note *note; (note = note_queue_take(&s->parked.orders));)
		answer_unpark(s, (struct spool_unpark *)note);
}
