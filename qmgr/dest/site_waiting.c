/* SPDX-License-Identifier: ISC */
/* Sites that would use a connection to a host, if there were one. */
#include "qmgr/dest/conn.h"
#include "qmgr/dest/site.h"

/* Whichever of its hosts has a connection to spare first will say so. */
void site_wait_for_hosts(struct site *s)
{
	for (int i = 0; i < s->nhost; i++) {
		struct site_host *it = &s->hosts[i];
		if (site_host_out(it) || !list_empty(&it->in_full))
			continue;
		list_append(&it->host->full, &it->in_full);
		if (it->host->nidle > 0)
			site_touch(s); /* one that has had its turn is free for it now */
	}
}

void site_wait_no_more(struct site *s)
{
	for (int i = 0; i < s->nhost; i++)
		list_remove(&s->hosts[i].in_full);
}

/* Each is told once in a round: who makes no use of it waits behind the others. */
void site_feed_waiting_for(struct host *h)
{
	list_each (link, tmp, &h->full) {
		struct site *s = list_entry(link, struct site_host, in_full)->site;
		if (s->fed == s->db->rounds)
			continue;
		s->fed = s->db->rounds;
		s->fed_by = h;
		list_remove(link);
		list_append(&h->full, link);
		site_touch(s);
		if (h->connections > 0)
			return;
	}
}

void site_pass_on(struct site *s)
{
	struct host *h = s->fed_by;
	s->fed_by = NULL;
	if (s->queue.state == QUEUE_PLACED)
		return;
	if (h)
		site_feed_waiting_for(h);
	list_each (link, tmp, &s->open) {
		const struct conn *c = list_entry(link, struct conn, in_site);
		if (c->busy == 0 && c->host != h)
			site_feed_waiting_for(c->host);
	}
}
