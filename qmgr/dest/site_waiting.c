/* SPDX-License-Identifier: ISC */
/* Sites that would use a connection to a host, if there were one. */
#include "qmgr/dest/conn_places.h"
#include "qmgr/dest/site.h"

/* Others had made room for a site without any connection (conn_yields()), which wants none any more: they look again. */
static void end_yielding(struct site *to)
{
	for (int i = 0; i < to->nhost && to->yielded_to; i++) {
		if (list_empty(&to->hosts[i].in_full))
			continue;
		list_each_entry (struct conn, c, in_host_idle, &to->hosts[i].host->idle)
			if (c->turn >= CONN_TURN && c->site->queue.waiting > 0)
				site_touch(c->site);
	}
	to->yielded_to = false;
}

/* One that is out may have connections of other sites that serve. */
static bool may_spare_any(const struct site_host *it)
{
	return !site_host_out(it) || (it->host->ready > 0 && !it->suspended);
}

/* Whichever of its hosts has a connection to spare first will say so. */
void site_wait_for_hosts(struct site *s)
{
	for (int i = 0; i < s->nhost; i++) {
		struct site_host *it = &s->hosts[i];
		if (!may_spare_any(it) || !list_empty(&it->in_full))
			continue;
		list_append(&it->host->full, &it->in_full);
		if (it->host->nidle > 0)
			site_touch(s); /* one that has had its turn is free for it now */
	}
	if (s->connections > 0)
		end_yielding(s);
	s->yielded_to = s->connections == 0;
}

void site_wait_no_more(struct site *s)
{
	end_yielding(s);
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
		list_move(&h->full, link);
		site_touch(s);
		if (h->connections > 0)
			return;
	}
}

/* Who was told in vain before, as this site wanted its own, is told again. Each time something was given, so that this ends. */
static void begin_round(struct destdb *db)
{
	db->rounds += db->given;
	db->given = false;
}

void site_pass_on(struct site *s)
{
	struct host *h = s->fed_by;
	s->fed_by = NULL;
	if (s->queue.state == QUEUE_PLACED)
		return;
	if (h)
		site_feed_waiting_for(h);
	list_each_entry (const struct conn, c, in_site, &s->open) {
		if (c->busy > 0 || c->host == h || list_empty(&c->host->full))
			continue;
		begin_round(s->db);
		site_feed_waiting_for(c->host);
	}
}
