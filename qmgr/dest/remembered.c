/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/remembered.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static void forget(struct destdb *db, struct remembered *r)
{
	HASH_DEL(db->remembered, r);
	free(r->key);
	free(r);
}

void remembered_add(struct destdb *db, const char *key, int concurrency, int64_t at_ms)
{
	struct remembered *r;
	HASH_FIND_STR(db->remembered, key, r);
	if (!r) {
		if (HASH_COUNT(db->remembered) >= REMEMBERED_MAX)
			forget(db, db->remembered); /* the oldest */
		r = mem_zalloc(sizeof *r);
		r->key = mem_strdup(key);
		HASH_ADD_KEYPTR(hh, db->remembered, r->key, strlen(r->key), r);
	}
	r->concurrency = concurrency;
	r->at_ms = at_ms;
}

void remembered_keep(const struct site *s)
{
	int64_t first = s->queue.transport->settings->initial_destination_concurrency;
	if (!window_dead(&s->window) && s->window.concurrency != first)
		remembered_add(s->db, s->key, s->window.concurrency, clock_wall_ms());
}

void remembered_recall(struct site *s)
{
	struct remembered *r;
	int64_t limit = s->queue.transport->settings->destination_concurrency_limit;
	HASH_FIND_STR(s->db->remembered, s->key, r);
	if (!r)
		return;
	int64_t age_ms = clock_wall_ms() - r->at_ms;
	if (age_ms >= 0 && age_ms < REMEMBERED_MS && (limit == 0 || r->concurrency <= limit))
		s->window.concurrency = r->concurrency;
	forget(s->db, r);
}

void remembered_free(struct destdb *db)
{
	struct remembered *r, *tmp;
	HASH_ITER(hh, db->remembered, r, tmp)
	forget(db, r);
}
