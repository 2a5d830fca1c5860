/* SPDX-License-Identifier: ISC */
#include "qmgr/remembered.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static void forget(struct qmgr *q, struct remembered *r)
{
	HASH_DEL(q->remembered, r);
	free(r->key);
	free(r);
}

void remembered_add(struct qmgr *q, const char *key, int concurrency, int64_t at_ms)
{
	struct remembered *r;
	HASH_FIND_STR(q->remembered, key, r);
	if (!r) {
		if (HASH_COUNT(q->remembered) >= REMEMBERED_MAX)
			forget(q, q->remembered); /* the oldest */
		r = mem_zalloc(sizeof *r);
		r->key = mem_strdup(key);
		HASH_ADD_KEYPTR(hh, q->remembered, r->key, strlen(r->key), r);
	}
	r->concurrency = concurrency;
	r->at_ms = at_ms;
}

void remembered_keep(const struct site *s)
{
	int64_t first = s->transport->settings->initial_destination_concurrency;
	if (!window_dead(&s->window) && s->window.concurrency != first)
		remembered_add(s->qmgr, s->key, s->window.concurrency, clock_wall_ms());
}

void remembered_recall(struct site *s)
{
	struct remembered *r;
	int64_t limit = s->transport->settings->destination_concurrency_limit;
	HASH_FIND_STR(s->qmgr->remembered, s->key, r);
	if (!r)
		return;
	int64_t age_ms = clock_wall_ms() - r->at_ms;
	if (age_ms >= 0 && age_ms < REMEMBERED_MS && (limit == 0 || r->concurrency <= limit))
		s->window.concurrency = r->concurrency;
	forget(s->qmgr, r);
}

void remembered_free(struct qmgr *q)
{
	struct remembered *r, *tmp;
	HASH_ITER(hh, q->remembered, r, tmp)
	forget(q, r);
}
