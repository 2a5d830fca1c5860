/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/leased.h"

#include "base/sharing.h"
#include "qmgr/dest/conn.h"

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* What all nodes together may have; 0: any number. One more than was learnt when that may be tried. */
static int64_t limit_of(const struct host *h, int64_t host_limit, int64_t now_ms)
{
	const struct host_limit *l = &h->limit;
	int64_t learnt = l->n == 0 ? 0 : l->n + (now_ms >= l->again_ms);
	return host_limit == 0 || learnt == 0 ? most(host_limit, learnt)
					      : least(host_limit, learnt);
}

bool leased_room(const struct host *h, int64_t host_limit, int64_t now_ms)
{
	int64_t limit = limit_of(h, host_limit, now_ms);
	return limit == 0 || h->connections < least(limit, h->leased.hold);
}

static void tell(struct destdb *db, const struct host *h)
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

static void need(struct destdb *db, struct host *h, int64_t limit, int64_t more)
{
	struct leased *l = &h->leased;
	int64_t want = least(limit, most(l->want, h->connections + more));
	if (limit == 0 || (limit == l->limit && want <= l->want))
		return;
	l->limit = limit;
	l->want = want;
	l->hold = most(l->hold, h->connections); /* they were begun before there was a limit */
	tell(db, h);
}

void leased_need(struct site *s)
{
	struct destdb *db = s->db;
	int end, first = db->edges.to_cluster ? destdb_group(s->hosts, s->nhost, &end) : -1;
	int64_t room = site_limit(s) - (s->connections - s->slow);
	int64_t more = most(1, least(s->queue.waiting - (s->connecting - s->slow), room));
	for (int i = first; first >= 0 && i < end; i++) {
		struct host *h = s->hosts[i].host;
		int64_t host_limit = s->queue.transport->settings->host_connection_limit;
		if (!site_host_out(&s->hosts[i]))
			need(db, h, limit_of(h, host_limit, destdb_now_ms(db)), more);
	}
}

/* Those that are told to close; the numbers follow when they have. */
static void end_surplus(struct destdb *db, struct host *h)
{
	int64_t surplus = h->connections - h->leased.fair;
	list_each (link, tmp, &h->conns) {
		const struct conn *c = list_entry(link, struct conn, in_host);
		surplus -= !conn_ready(c) && !conn_unready(c);
	}
	for (bool idle = true;; idle = false) {
		list_each (link, tmp, &h->conns) {
			struct conn *c = list_entry(link, struct conn, in_host);
			bool open = conn_ready(c) || (conn_unready(c) && !idle);
			if (surplus > 0 && open && (!idle || c->busy == 0)) {
				conn_end(db, c);
				surplus--;
			}
		}
		if (!idle)
			return;
	}
}

/* Down to what is fair, and to what is wanted, but never below what there is. */
static void lower(struct destdb *db, struct host *h)
{
	struct leased *l = &h->leased;
	int64_t hold = most(h->connections, least(l->fair, l->want));
	if (hold >= l->hold)
		return;
	l->hold = hold;
	tell(db, h);
}

void leased_heard(struct destdb *db, struct sharing_leased *note)
{
	struct host *h;
	HASH_FIND_STR(db->hosts, note->key, h);
	if (h && h->leased.limit > 0 && db->edges.to_cluster) {
		struct leased *l = &h->leased;
		bool first = l->heard == 0, more = note->allowed > l->hold;
		l->heard = note->number;
		l->fair = note->fair;
		l->others = note->others;
		l->hold = note->allowed;
		l->scarce = note->scarce;
		if (h->nidle > 0)
			leased_idle(db, h);
		/* What it was seen to take it takes of all of them. */
		if (first && h->limit.n > 0)
			h->limit.n = (int)most(h->limit.n, h->ready + l->others);
		if (l->fair < l->want)
			end_surplus(db, h);
		lower(db, h);
		if (more)
			site_feed_waiting_for(h);
	}
	sharing_leased_free(&note);
}

void leased_closed(struct destdb *db, struct host *h)
{
	struct leased *l = &h->leased;
	if (l->limit == 0)
		return;
	if (list_empty(&h->full) && h->connections < l->want) {
		l->want = h->connections;
		l->hold = least(l->hold, h->connections);
		tell(db, h);
	}
	lower(db, h);
}

void leased_idle(struct destdb *db, struct host *h)
{
	list_remove(&h->leased.in_scarce);
	if (h->leased.scarce)
		list_append(&db->scarce, &h->leased.in_scarce);
}

void leased_flush(struct destdb *db)
{
	for (struct list *first; (first = list_first(&db->scarce)) != NULL;) {
		struct host *h = list_entry(first, struct host, leased.in_scarce);
		list_remove(first);
		list_each (link, tmp, &h->idle)
			conn_end(db, list_entry(link, struct conn, in_host_idle));
	}
}

void leased_end(struct destdb *db, struct host *h)
{
	struct leased *l = &h->leased;
	if (l->limit == 0 || (l->hold == 0 && l->want == 0))
		return;
	l->hold = l->want = 0;
	tell(db, h);
}
