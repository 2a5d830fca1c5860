/* SPDX-License-Identifier: ISC */
#include "qmgr/snapshot.h"

#include "base/mem.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/site.h"
#include "qmgr/message.h"
#include "qmgr/nexthop.h"
#include "qmgr/sched/job.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool is_busier(const struct site *a, const struct site *b)
{
	int64_t work_a = a->queue.waiting + a->busy, work_b = b->queue.waiting + b->busy;
	if (work_a != work_b)
		return work_a > work_b;
	if (a->verdicts != b->verdicts)
		return a->verdicts > b->verdicts;
	return strcmp(a->key, b->key) < 0;
}

static bool is_worse(const struct site *a, const struct site *b)
{
	int bad_a = site_badness(site_state_name(a)), bad_b = site_badness(site_state_name(b));
	int64_t wait_a = a->queue.waiting + a->parked.deferred;
	int64_t wait_b = b->queue.waiting + b->parked.deferred;
	if (bad_a != bad_b)
		return bad_a > bad_b;
	return wait_a != wait_b ? wait_a > wait_b : is_busier(a, b);
}

static struct verdict *newest_verdict(const struct site *s)
{
	struct verdict *reply = s->last_verdict, *failure = s->last_failure;
	return !reply || (failure && failure->when_ms > reply->when_ms) ? failure : reply;
}

/* TLS as it must be is what lacks. */
static bool is_unproven(const struct site *s)
{
	static const char *const dsn[] = {"4.7.4", "4.7.5", "4.7.10", "4.7.30"};
	const struct verdict *v = newest_verdict(s);
	for (size_t i = 0; v && i < sizeof dsn / sizeof *dsn; i++)
		if (strcmp(v->dsn, dsn[i]) == 0)
			return true;
	return false;
}

static bool is_any(const struct site *s)
{
	(void)s;
	return true;
}

/* The first so many of those that fit, in order: each is put in its place, and the last falls out. */
static int choose_sites(const struct qmgr *q, const struct site *chosen[SNAPSHOT_SITES_MAX],
			bool (*fits)(const struct site *),
			bool (*before)(const struct site *, const struct site *))
{
	int n = 0;
	for (const struct site *s = q->db.sites; s; s = s->hh.next) {
		int at = n;
		if (!fits(s))
			continue;
		if (n == SNAPSHOT_SITES_MAX && !before(s, chosen[n - 1]))
			continue;
		if (n == SNAPSHOT_SITES_MAX)
			at--;
		else
			n++;
		for (; at > 0 && before(s, chosen[at - 1]); at--)
			chosen[at] = chosen[at - 1];
		assert(at >= 0 && at < SNAPSHOT_SITES_MAX);
		chosen[at] = s;
	}
	return n;
}

static int64_t count_down(const struct qmgr *q)
{
	int64_t n = 0;
	for (const struct site *s = q->db.sites; s; s = s->hh.next)
		n += s->health == SITE_DEAD || s->health == SITE_OUT || s->health == SITE_REFUSED;
	return n;
}

static int64_t arrived_ms(const struct list *link)
{
	const struct peer *p = list_entry(link, struct peer, in_queue);
	return p->job->work->envelope->arrived_ms;
}

/* Mail that came back from the queue stands behind what is younger. */
static int64_t oldest_ms(const struct site *s)
{
	const struct list *head = &s->queue.peers, *l = head->next, *r = head->prev;
	int64_t found = 0;
	for (int n = 0; l != head && n < SNAPSHOT_PEERS_MAX; n++, l = l->next, r = r->prev) {
		int64_t a = arrived_ms(l), b = arrived_ms(r);
		int64_t older = a < b ? a : b;
		found = !found || older < found ? older : found;
	}
	return found;
}

static void copy_site(struct snapshot_site *to, const struct site *s, int64_t now_ms)
{
	int64_t until_ms = site_down_until_ms(s);
	*to = (struct snapshot_site){
		.key = mem_strdup(s->key),
		.name = mem_strdup(s->name),
		.transport = mem_strdup(s->queue.transport->title),
		.provider = s->provider ? mem_strdup(s->provider->name) : NULL,
		.state = site_state_name(s),
		.window = s->window.concurrency,
		.connections = s->connections,
		.connecting = s->connecting,
		.busy = s->busy,
		.waiting = s->queue.waiting,
		.deferred = s->parked.deferred,
		.verdicts = s->verdicts,
		.unreached = s->unreached,
		.oldest_ms = oldest_ms(s),
		.number = s->parked.number,
		.dead_in_ms = until_ms > now_ms ? until_ms - now_ms : 0,
		.pace = site_pace_rate(s),
		.last = verdict_ref(newest_verdict(s)),
	};
	to->sent_lately = site_hour_lately(s, SITE_HOUR_SENT, &to->lately_ms);
	to->deferred_lately = site_hour_lately(s, SITE_HOUR_DEFERRED, &to->lately_ms);
}

static void add_domain(struct snapshot_site *to, const struct nexthop *n)
{
	if (to->domains < SNAPSHOT_DOMAINS)
		to->domain[to->domains] = nexthop_target(n);
	to->domains++;
}

static void copy_seen_domains(struct snapshot_site *to, const struct site_domains *seen)
{
	for (int i = 0; i < SNAPSHOT_DOMAINS && i < seen->nname; i++)
		to->domain[i] = mem_strdup(seen->name[i]);
	to->domains = seen->n;
	to->domains_seen = true;
}

/* Next hops by MX have their domain in their key. */
static void copy_domains(struct snapshot *to, const struct qmgr *q,
			 const struct site *const chosen[SNAPSHOT_SITES_MAX])
{
	int asked = 0;
	for (const struct nexthop *n = q->nexthops; n && asked < SNAPSHOT_NEXTHOPS_MAX;
	     n = n->hh.next, asked++) {
		const struct site *s = n->site_name ? NULL : nexthop_site(n);
		for (int i = 0; s && i < to->nsite; i++)
			if (chosen[i] == s)
				add_domain(&to->worst[i], n);
	}
	for (int i = 0; i < to->nsite; i++)
		if (to->worst[i].domains == 0 && chosen[i]->domains)
			copy_seen_domains(&to->worst[i], chosen[i]->domains);
}

void snapshot_take(struct qmgr *q, struct snapshot *to)
{
	const struct site *chosen[SNAPSHOT_SITES_MAX];
	assert(loop_is_ours(q->sched.loop));
	assert(to->nsite == 0 && to->nunproven == 0);
	to->nsite = choose_sites(q, chosen, is_any, is_busier);
	for (int i = 0; i < to->nsite; i++)
		copy_site(&to->site[i], chosen[i], scheduler_now_ms(&q->sched));
	choose_sites(q, chosen, is_any, is_worse);
	for (int i = 0; i < to->nsite; i++)
		copy_site(&to->worst[i], chosen[i], scheduler_now_ms(&q->sched));
	copy_domains(to, q, chosen);
	to->nunproven = choose_sites(q, chosen, is_unproven, is_worse);
	for (int i = 0; i < to->nunproven; i++)
		copy_site(&to->unproven[i], chosen[i], scheduler_now_ms(&q->sched));
	snapshot_flows_take(q, &to->flows);
	to->dead = count_down(q);
	to->sites = HASH_COUNT(q->db.sites);
	loop_post(to->reply_to, &to->note);
}

struct snapshot *snapshot_new(struct loop *reply_to)
{
	struct snapshot *s = mem_zalloc(sizeof *s);
	s->note.type = QMGR_SNAPSHOT;
	s->reply_to = reply_to;
	return s;
}

static void fini_site(struct snapshot_site *s)
{
	free(s->key);
	free(s->name);
	free(s->transport);
	free(s->provider);
	for (int i = 0; i < SNAPSHOT_DOMAINS; i++)
		free(s->domain[i]);
	verdict_unref(s->last);
}

void snapshot_free(struct snapshot **sp)
{
	struct snapshot *s = *sp;
	if (!s)
		return;
	for (int i = 0; i < s->nsite; i++) {
		fini_site(&s->site[i]);
		fini_site(&s->worst[i]);
	}
	for (int i = 0; i < s->nunproven; i++)
		fini_site(&s->unproven[i]);
	snapshot_flows_fini(&s->flows);
	free(s);
	*sp = NULL;
}
