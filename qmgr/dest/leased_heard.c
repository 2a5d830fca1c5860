/* SPDX-License-Identifier: ISC */
/* Answers of the cluster: more connections, or fewer. */
#include "base/sharing.h"
#include "qmgr/dest/conn.h"

#include <stdlib.h>

/* Those that are told to close; the numbers follow when they have. */
static void end_surplus(struct destdb *db, struct host *h)
{
	int64_t surplus = h->connections - h->leased.fair;
	list_each_entry (const struct conn, c, in_host, &h->conns)
		surplus -= !conn_ready(c) && !conn_unready(c);
	for (bool idle = true;; idle = false) {
		list_each_entry (struct conn, c, in_host, &h->conns) {
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
		/* The host was seen to take so many of all nodes. */
		if (first && h->limit.n > 0 && h->limit.n < h->ready + l->others)
			h->limit.n = (int)(h->ready + l->others);
		if (l->fair < l->want)
			end_surplus(db, h);
		leased_lower(db, h);
		if (more)
			site_feed_waiting_for(h);
	}
	free(note);
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
