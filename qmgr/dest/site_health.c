/* SPDX-License-Identifier: ISC */
/* Is a site alive, and what becomes of its mail while it is not. */
#include "base/log.h"
#include "qmgr/dest/conn.h"
#include "qmgr/dest/early.h"
#include "qmgr/dest/admission.h"
#include "qmgr/dest/pooling.h"
#include "qmgr/dest/site_limits.h"
#include "qmgr/dest/source.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/sched/job.h"
#include "spool/spool.h"
#include "qmgr/sched/selection.h"

#include <assert.h>
#include <stdlib.h>

enum {
	PROBE_AGAIN_MS = 1000,
	SLICE_FIRST = 20, /* parked messages that come back at first, */
	SLICE_MOST = 1000,
	OVERDUE_MS =
		60000, /* where a site is paced, what has waited too long is looked for so often */
	SLICE_AGAIN_MS = 1000, /* where the last ones have not come to anything */
};

static const char *health_name(enum site_health health)
{
	static const char *const names[] = {
#define X(health, text) [SITE_##health] = text,
		SITE_HEALTHS(X)
#undef X
	};
	assert(health < sizeof names / sizeof names[0]);
	return names[health];
}

static const char *reason_text(const struct site *s)
{
	const struct verdict *v = s->health != SITE_ALIVE ? s->last_failure : NULL;
	return v ? log_reply(v->code, v->text) : NULL;
}

static void site_health_move(struct site *s, enum site_health to)
{
	if (s->health == to)
		return;
	if (s->health == SITE_ALIVE)
		s->down_ms = destdb_now_ms(s->db);
	s->health = to;
	s->parked.slice = 0;
	log_event(LOG_LEVEL_INFO, "site", "site", s->name, "transport", s->queue.transport->title,
		  "state", health_name(to), "window", log_number(s->window.concurrency), "reason",
		  reason_text(s), NULL);
}

static bool is_limited(const struct site *s)
{
	struct peer *first = selection_first(&s->queue);
	if (s->health != SITE_ALIVE || !first)
		return false;
	enum constraint c = admission_of(s, first).constraint;
	return c == CONSTRAINT_HOST_PAUSE || c == CONSTRAINT_HOST_CONNECTION_LIMIT;
}

const char *site_state_name(const struct site *s)
{
	if (s->health == SITE_ALIVE && site_pace_narrow(s))
		return "paced";
	return is_limited(s) ? "limited" : health_name(s->health);
}

int site_badness(const char *state)
{
	static const struct {
		const char *state;
		int badness;
	} worst[] = {{"dead", 4},      {"out", 4},     {"refused", 4},
		     {"suspended", 3}, {"limited", 2}, {"paced", 2}};
	for (size_t i = 0; i < sizeof worst / sizeof worst[0]; i++)
		if (strcmp(state, worst[i].state) == 0)
			return worst[i].badness;
	return 0;
}

/* --- hosts that are out */

/* The failure to report when no host is in service: of the host that failed last. */
static void adopt_failure(struct site *s)
{
	struct verdict *latest = site_refusal(s, false);
	for (int i = 0; i < s->nhost; i++) {
		struct site_host *it = &s->hosts[i];
		bool suspended = it->suspended || it->host->suspended;
		struct verdict *why = suspended ? suspend_verdict("host", 0)
				      : source_misses(s, it->host)
					      ? source_missing_verdict(s, it->host)
					      : host_why(it->host, it->name);
		if (why && (!latest || why->when_ms > latest->when_ms)) {
			verdict_unref(latest);
			latest = verdict_ref(why);
		}
		verdict_unref(why);
	}
	if (latest)
		site_adopt_failure(s, latest);
	verdict_unref(latest);
}

/* Somebody wants it: what waits here, or in the queue. */
static bool is_wanted(const struct site *s)
{
	return s->queue.waiting > 0 || s->parked.parked > 0;
}

static bool has_room_for_probe(const struct site *s)
{
	const struct transport *t = s->queue.transport;
	return !transport_full(t) && !site_limits_probes_full(t);
}

/* The dispatcher sees to it that there is some. */
static void wait_for_room(struct site *s, bool waits)
{
	if (!waits)
		list_remove(&s->in_probing);
	else if (list_empty(&s->in_probing))
		list_append(&s->queue.transport->probing, &s->in_probing);
}

/* One probe of each host whose time has come; for the others, wake up when it has. */
static void probe_hosts(struct site *s)
{
	int64_t now_ms = destdb_now_ms(s->db);
	bool room = true;
	for (int i = 0; i < s->nhost; i++) {
		struct site_host *it = &s->hosts[i];
		struct host *h = it->host;
		if (h->state != HOST_OUT || h->suspended || it->suspended || source_misses(s, h))
			continue;
		if (!host_probe_due(h, now_ms))
			site_wake_at(s, h->retry_ms);
		else if ((room = room && has_room_for_probe(s)) && pooling_may_probe(s->db, h))
			conn_open(s->db, s, it, true);
		else
			site_wake_at(s, now_ms + PROBE_AGAIN_MS);
	}
	wait_for_room(s, !room);
}

/* --- health */

static enum site_health health_of(const struct site *s)
{
	int end;
	if (s->suspended)
		return SITE_SUSPENDED;
	if (window_dead(&s->window))
		return SITE_DEAD;
	if (s->nhost > 0 && destdb_group(s->hosts, s->nhost, &end) < 0)
		return SITE_OUT;
	return site_pace_refuses(s) ? SITE_REFUSED : SITE_ALIVE;
}

/* --- parking */

static void park_entry(struct site *s, struct peer *p, struct verdict *why)
{
	bool untried = !s->db->bind_early && why->class == VERDICT_DEFERRED;
	struct work *w = p->job->work;
	struct entry *e = peer_drop(p);
	s->db->thread.defer(s, e, why, untried);
	assert(e->n == 0);
	job_entry_done(e);
	s->db->thread.check(w);
}

/* Any but that whose turn it is, which asks, as long as there is another. */
static struct peer *to_park(const struct site *s)
{
	struct peer *asks = selection_first(&s->queue);
	struct list *all = (struct list *)&s->queue.peers, *at = all->next;
	assert(at != all);
	if (list_entry(at, struct peer, in_queue) == asks && at->next != all)
		at = at->next;
	return list_entry(at, struct peer, in_queue);
}

/* All but so many. */
static void park_all(struct site *s, int64_t but, struct verdict *why)
{
	assert(why);
	while (s->queue.waiting > but)
		park_entry(s,
			   but ? to_park(s)
			       : list_entry(list_first(&s->queue.peers), struct peer, in_queue),
			   why);
}

/* One destination must not fill the active queue. POSTFIX QSHAPE_README. */
static bool is_crowded(const struct destdb *db)
{
	return 2 * (int64_t)db->sched->nactive > db->sched->conf->queue.message_active_limit;
}

static struct verdict *why_parked(struct site *s)
{
	struct verdict *refusal = s->health == SITE_SUSPENDED ? NULL : site_refusal(s, true);
	if (refusal)
		return refusal;
	if (s->health == SITE_SUSPENDED)
		return suspend_verdict("site", suspend_site_until_ms(s->db, s));
	if (s->health == SITE_REFUSED && s->pacing->why)
		return verdict_ref(
			s->pacing->why); /* another site of its provider may have been told */
	if (s->health == SITE_OUT || !s->last_failure)
		adopt_failure(s);
	return verdict_ref(s->last_failure);
}

/* Patience begins when the site dies, and anew with each probe: it may be answered. */
static int64_t patient_until_ms(const struct site *s)
{
	int64_t since_ms = s->down_ms;
	list_each_entry (const struct conn, c, in_site, &s->rest)
		if (conn_unready(c) && c->opened_ms > since_ms)
			since_ms = c->opened_ms;
	return since_ms + s->queue.transport->settings->site_patience;
}

static void park_when_due(struct site *s)
{
	int64_t but = s->health == SITE_REFUSED; /* that is asked with */
	bool at_once = s->health == SITE_SUSPENDED || s->db->bind_early || is_crowded(s->db);
	if (s->queue.waiting <= but || s->health == SITE_ALIVE)
		return;
	int64_t until_ms = patient_until_ms(s);
	if (!at_once && destdb_now_ms(s->db) < until_ms) {
		site_wake_at(s, until_ms);
		return;
	}
	struct verdict *why = why_parked(s);
	park_all(s, but, why);
	verdict_unref(why);
}

static struct verdict *said_at_a_pace(const struct site *s)
{
	return s->pacing->why ? s->pacing->why : s->last_failure;
}

struct verdict *site_keeps_waiting(const struct site *s)
{
	bool paced = s->health == SITE_REFUSED || site_pace_rate(s) > 0;
	struct verdict *down = s->health != SITE_ALIVE ? s->last_failure : NULL;
	return verdict_ref(paced ? said_at_a_pace(s) : down);
}

/* At a pace a message may wait for longer than it lives. */
static void park_overdue(struct site *s)
{
	int64_t now_ms = destdb_now_ms(s->db);
	if (site_pace_rate(s) <= 0 || s->queue.waiting == 0 || now_ms < s->overdue_ms + OVERDUE_MS)
		return;
	s->overdue_ms = now_ms;
	struct verdict *why = verdict_ref(said_at_a_pace(s));
	list_each_entry (struct peer, p, in_queue, &s->queue.peers)
		if (why && p->waiting == 1 && s->db->thread.overdue(p->job->work))
			park_entry(s, p, why);
	verdict_unref(why);
}

/* One is in service, such as one that was resumed or that the DNS has added; or nothing is left whose probe could
 * bring the site back. */
static bool needs_no_probe(const struct site *s)
{
	bool all_up = true;
	for (int i = 0; i < s->nhost; i++) {
		if (!site_host_out(&s->hosts[i]))
			return true;
		all_up &= s->hosts[i].host->state == HOST_UP;
	}
	return all_up;
}

static bool dead_for_nothing(const struct site *s)
{
	return window_dead(&s->window) && !s->db->bind_early && needs_no_probe(s);
}

void site_see_to_health(struct site *s)
{
	early_see_to(s);
	if (dead_for_nothing(s))
		site_revive(s);
	enum site_health is = health_of(s);
	if (is == SITE_OUT && s->health != SITE_OUT)
		adopt_failure(s);
	site_health_move(s, is);
	if (is_wanted(s) && is != SITE_SUSPENDED && !s->db->bind_early)
		probe_hosts(s);
	else
		wait_for_room(s, false);
	park_when_due(s);
	park_overdue(s);
}

void site_try_now(struct site *s)
{
	for (int i = 0; i < s->nhost; i++)
		host_probe_now(s->hosts[i].host, destdb_now_ms(s->db));
	site_touch(s);
}

/* --- mail in the queue */

void site_number(struct site *s)
{
	struct destdb *db = s->db;
	for (unsigned n = 1; s->parked.number == 0 && n <= SPOOL_SITE_MAX; n++) {
		db->last_site = db->last_site % SPOOL_SITE_MAX + 1;
		if (db->last_site == SPOOL_SITE_NAMES || db->numbered[db->last_site])
			continue;
		db->numbered[db->last_site] = s;
		s->parked.number = (uint16_t)db->last_site;
	}
}

static void ask_spool(struct site *s, uint32_t most)
{
	assert(s->parked.number > 0 && !s->parked.asking);
	assert(s->db->numbered[s->parked.number] == s);
	struct spool_unpark *note = mailbox_note(sizeof *note, SPOOL_UNPARK);
	note->site = s->parked.number;
	note->most = most;
	s->parked.asking = true;
	s->parked.late = s->parked.late_parked = 0;
	s->db->edges.to_spool(s->db->edges.context, &note->note);
}

void site_ask_for_mail(struct site *s)
{
	if (s->parked.number > 0 && !s->parked.asking)
		ask_spool(s, 0);
}

/* The last slice has come to something, or to nothing for some time. */
static bool slice_done(const struct site *s)
{
	const struct site_parked *p = &s->parked;
	return p->slice == 0 || s->verdicts - p->verdicts >= p->slice / 2 ||
	       destdb_now_ms(s->db) >= p->asked_ms + SLICE_AGAIN_MS;
}

/* To ask the hosts with. */
static void call_one(struct site *s)
{
	if (s->queue.waiting > 0 || s->pacing->under_way > 0 || s->parked.leaving > 0)
		return;
	int64_t at_ms = s->parked.asked_ms + SLICE_AGAIN_MS; /* the one before may be on its way */
	if (at_ms < site_pace_due_ms(s))
		at_ms = site_pace_due_ms(s);
	if (destdb_now_ms(s->db) < at_ms) {
		site_wake_at(s, at_ms);
		return;
	}
	s->parked.asked_ms = destdb_now_ms(s->db);
	ask_spool(s, 1);
}

/* All have been called: so many have not begun. */
static void count_left(struct site *s)
{
	int64_t at_ms = s->parked.asked_ms + SLICE_AGAIN_MS;
	if (s->parked.slice == 0)
		return;
	if (destdb_now_ms(s->db) < at_ms) {
		site_wake_at(s, at_ms);
		return;
	}
	s->parked.slice = 0;
	site_ask_for_mail(s);
}

void site_call_back(struct site *s)
{
	struct site_parked *p = &s->parked;
	if (p->asking)
		return;
	if (p->parked == 0) {
		count_left(s);
		return;
	}
	if (s->health == SITE_REFUSED)
		call_one(s);
	if (s->health != SITE_ALIVE)
		return;
	if (!slice_done(s)) {
		site_wake_at(s, p->asked_ms + SLICE_AGAIN_MS);
		return;
	}
	if (s->queue.waiting > (int64_t)p->slice)
		return; /* more would only lie here */
	p->slice = p->slice ? 2 * p->slice : SLICE_FIRST;
	if (p->slice > SLICE_MOST)
		p->slice = SLICE_MOST;
	p->verdicts = s->verdicts;
	p->asked_ms = destdb_now_ms(s->db);
	ask_spool(s, p->slice);
}

void site_called_back(struct destdb *db, struct spool_unpark *note)
{
	assert(note->site <= SPOOL_SITE_MAX && note->parked <= note->waiting);
	struct site *s = db->numbered[note->site];
	assert(s && s->parked.asking);
	assert(s->parked.number == note->site && s->parked.late_parked <= s->parked.late);
	s->parked.asking = false;
	s->parked.parked = note->parked + s->parked.late_parked;
	s->parked.deferred = note->waiting + s->parked.late;
	if (s->parked.deferred == 0 && s->parked.leaving == 0) {
		db->numbered[note->site] = NULL;
		s->parked.number = 0;
	}
	site_touch(s);
	free(note);
}
