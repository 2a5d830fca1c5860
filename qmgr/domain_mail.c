/* SPDX-License-Identifier: ISC */
#include "qmgr/domain_mail.h"

#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "qmgr/dest/site_name.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/message.h"
#include "qmgr/nexthop.h"
#include "qmgr/outcome.h"
#include "qmgr/sched/pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Is it where mail for this next hop goes? */
static bool site_serves_domain(const struct qmgr *q, const struct site *s, const char *domain)
{
	for (const struct nexthop *n = q->nexthops; n; n = n->hh.next)
		if (nexthop_site(n) == s && nexthop_is_for(n, domain))
			return true;
	return false;
}

/* Where the relays begin in the name of a site that some other mail of theirs is kept apart from by this domain. */
static const char *relays_of_name(const char *name, const char *domain)
{
	const char *by = strstr(name, " by ");
	char *of = mem_strndup(name, by ? (size_t)(by - name) : 0);
	bool is = by && name_key_same(domain, of);
	free(of);
	return is ? by + strlen(" by ") : name;
}

/* By a route that leads to the default transport mail goes by those of flows, too. */
static bool may_carry(const struct conf *c, const struct route *route, const char *transport)
{
	bool carries = strcmp(route->by->title, transport) == 0;
	for (int i = 0; route->by == &c->transport[0] && i < c->nflow && !carries; i++)
		carries = c->flow[i].by && strcmp(c->flow[i].by->title, transport) == 0;
	return carries;
}

/* Does the configuration send the domain's mail there? The site has the name of the relays then. */
static bool site_is_routed_to(const struct route *route, const struct site *s, const char *domain)
{
	const char *at = relays_of_name(s->name, domain);
	if (route->relay->n == 0 || !site_name_by_relays(s->key) ||
	    !may_carry(s->db->sched->conf, route, s->queue.transport->title))
		return false;
	for (int i = 0; i < route->relay->n; i++) {
		size_t len = strlen(route->relay->item[i]);
		if (strncmp(at, route->relay->item[i], len) != 0)
			return false;
		at += len;
		if (i + 1 < route->relay->n && *at++ != ',')
			return false;
	}
	return *at == '\0';
}

static bool has_any(const struct peer *p, const char *key)
{
	const struct envelope *env = p->job->work->envelope;
	for (const struct list *l = p->entries.next; l != &p->entries; l = l->next) {
		const struct entry *e = list_entry(l, struct entry, in_peer);
		for (uint32_t i = 0; i < e->n; i++)
			if (name_key_fits(key, mailaddr_domain(env->rcpt[e->recipient[i]].address)))
				return true;
	}
	return false;
}

/* Mail that waits there, wherever the configuration sends such mail by now. */
static bool site_has_any(const struct site *s, const char *key)
{
	for (const struct list *l = s->queue.peers.next; l != &s->queue.peers; l = l->next)
		if (has_any(list_entry(l, struct peer, in_queue), key))
			return true;
	return false;
}

bool domain_mail_goes_to(const struct qmgr *q, const char *domain, const struct site *s)
{
	struct mailaddr a;
	char *address = mem_printf("postmaster@%s", domain), *key = name_key(domain);
	bool goes = site_serves_domain(q, s, domain) ||
		    (mailaddr_mailbox(address, strlen(address), true, &a) == MAILADDR_OK &&
		     site_is_routed_to(route_find(q->routes, "", address), s, domain)) ||
		    site_has_any(s, key);
	free(key);
	free(address);
	return goes;
}

/* Its recipients of the domain are put off; the others stay in it. */
static void hold_recipients(struct entry *e, const char *key, struct verdict *why)
{
	struct message *m = message_of_work(e->peer->job->work);
	struct outcome_context context = {.transport = e->peer->job->transport, .untried = true};
	uint32_t left = 0;
	assert(!m->verifying);
	for (uint32_t i = 0; i < e->n; i++) {
		const char *address = m->work.envelope->rcpt[e->recipient[i]].address;
		if (name_key_fits(key, mailaddr_domain(address)))
			outcome_apply(m, e->recipient[i], why, &context);
		else
			e->recipient[left++] = e->recipient[i];
	}
	if (left < e->n)
		message_hold_domain(m, m->qmgr->db.resumes);
	pool_free(e->peer->job, e->n - left);
	e->n = left;
}

void domain_mail_hold_entry(struct entry *e)
{
	const struct message *m = message_of_work(e->peer->job->work);
	const struct destdb *db = &m->qmgr->db;
	for (uint32_t i = 0; db->suspended && !m->verifying && i < e->n;) {
		const char *address = m->work.envelope->rcpt[e->recipient[i]].address;
		const char *domain = mailaddr_domain(address);
		if (!suspend_covers_domain(db, domain)) {
			i++;
			continue;
		}
		struct verdict *why =
			suspend_verdict("domain", suspend_domain_until_ms(db, domain));
		char *key = name_key(domain);
		hold_recipients(e, key, why);
		free(key);
		verdict_unref(why);
	}
}

/* Entries that have other recipients stay in their order. */
static void hold_peer(struct peer *p, const char *key, struct verdict *why)
{
	list_each (link, next, &p->entries) {
		struct entry *e = list_entry(link, struct entry, in_peer);
		hold_recipients(e, key, why);
		if (e->n == 0) {
			peer_drop_entry(e);
			job_entry_done(e);
		}
	}
}

static void hold_of_site(struct qmgr *q, struct site *s, const char *key, struct verdict *why)
{
	list_each (link, tmp, &s->queue.peers) {
		struct peer *p = list_entry(link, struct peer, in_queue);
		struct message *m = message_of_work(p->job->work);
		if (m->verifying || !has_any(p, key))
			continue;
		hold_peer(p, key, why);
		message_check(q, m);
	}
	site_touch(s);
}

void domain_mail_hold(struct qmgr *q, const char *domain)
{
	struct verdict *why = suspend_verdict("domain", suspend_domain_until_ms(&q->db, domain));
	char *key = name_key(domain);
	for (struct site *s = q->db.sites; s; s = s->hh.next)
		hold_of_site(q, s, key, why);
	free(key);
	verdict_unref(why);
}
