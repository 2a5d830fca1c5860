/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/leased.h"

#include "base/number.h"
#include "base/sharing.h"
#include "qmgr/dest/destdb.h"

/* Connections that all nodes together may have; 0: any number. One more than was learnt when that may be tried. */
static int64_t limit_of(const struct host *h, int64_t host_limit, int64_t now_ms)
{
	const struct host_limit *l = &h->limit;
	int64_t learnt = l->n == 0 ? 0 : l->n + (now_ms >= l->again_ms);
	return host_limit == 0 || learnt == 0 ? number_max(host_limit, learnt)
					      : number_min(host_limit, learnt);
}

bool leased_room(const struct host *h, int64_t host_limit, int64_t now_ms)
{
	int64_t limit = limit_of(h, host_limit, now_ms);
	return limit == 0 || h->connections < number_min(limit, h->leased.hold);
}

static void tell_cluster(struct destdb *db, const struct host *h)
{
	const struct leased *l = &h->leased;
	if (!db->edges.to_cluster)
		return; /* this node is about to end */
	struct sharing_need *n = sharing_need_new(db->sched->loop, h->key);
	n->limit = l->limit;
	n->hold = l->hold;
	n->want = l->want;
	n->heard = l->heard;
	db->edges.to_cluster(db->edges.context, &n->note);
}

void leased_want(struct destdb *db, struct host *h, int64_t host_limit, int64_t more)
{
	struct leased *l = &h->leased;
	int64_t limit = limit_of(h, host_limit, destdb_now_ms(db));
	int64_t want = number_min(limit, number_max(l->want, h->connections + more));
	if (limit == 0 || (limit == l->limit && want <= l->want))
		return;
	l->limit = limit;
	l->want = want;
	l->hold =
		number_max(l->hold, h->connections); /* they were begun before there was a limit */
	tell_cluster(db, h);
}

void leased_lower(struct destdb *db, struct host *h)
{
	struct leased *l = &h->leased;
	int64_t hold = number_max(h->connections, number_min(l->fair, l->want));
	if (hold >= l->hold)
		return;
	l->hold = hold;
	tell_cluster(db, h);
}

void leased_closed(struct destdb *db, struct host *h)
{
	struct leased *l = &h->leased;
	if (l->limit == 0)
		return;
	if (list_empty(&h->full) && h->connections < l->want) {
		l->want = h->connections;
		l->hold = number_min(l->hold, h->connections);
		tell_cluster(db, h);
	}
	leased_lower(db, h);
}

void leased_idle(struct destdb *db, struct host *h)
{
	list_remove(&h->leased.in_scarce);
	if (h->leased.scarce)
		list_append(&db->scarce, &h->leased.in_scarce);
}

void leased_end(struct destdb *db, struct host *h)
{
	struct leased *l = &h->leased;
	if (l->limit == 0 || (l->hold == 0 && l->want == 0))
		return;
	l->hold = l->want = 0;
	tell_cluster(db, h);
}
