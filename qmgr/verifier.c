/* SPDX-License-Identifier: ISC */
#include "qmgr/verifier.h"

#include "base/ident.h"
#include "base/log.h"
#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "qmgr/message.h"
#include "qmgr/route/nexthop_name.h"
#include "qmgr/router.h"
#include "qmgr/sched/pool.h"
#include "qmgr/sched/shelf.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct verifier_domain {
	char *name;
	struct list waiting; /* struct verification, oldest first */
	struct list in_turn;
	int64_t underway; /* those that lag, too */
	UT_hash_handle hh;
};

struct verification {
	char *key; /* sender, a line end, address */
	char *way; /* that its route led when it was asked for */
	char *sender, *address;
	struct list
		link; /* in its domain; in brisk, or in none where it lags; among those remembered */
	struct note *asker;	 /* struct verify, linked by their notes */
	struct verdict *verdict; /* remembered; NULL: waits, or is under way */
	int64_t since_ms;	 /* steady clock: is it under way, or known */
	struct verifier_domain *domain;
	UT_hash_handle hh;
};

static const struct conf_verify *verify_settings(const struct qmgr *q)
{
	return &q->sched.conf->verify;
}

static void on_again(void *owner)
{
	struct qmgr *q = owner;
	q->verifier.due = true;
	q->db.thread.settle(q->db.thread.context);
}

void verifier_init(struct qmgr *q)
{
	struct verifier *f = &q->verifier;
	*f = (struct verifier){0};
	timer_init(&f->again, on_again, q);
	list_init(&f->brisk);
	list_init(&f->remembered);
	list_init(&f->turn);
	list_init(&f->messages);
}

/* --- answers */

static enum verify_result result_of(const struct verdict *v)
{
	return v->class == VERDICT_SENT	    ? VERIFY_TAKES
	       : v->class == VERDICT_FAILED ? VERIFY_REFUSES
					    : VERIFY_UNKNOWN;
}

static void answer_asker(struct verify *ask, enum verify_result result, struct verdict *v,
			 bool remembered)
{
	static const char *const names[] = {[VERIFY_TAKES] = "takes",
					    [VERIFY_REFUSES] = "refuses",
					    [VERIFY_UNKNOWN] = "unknown"};
	assert(result < sizeof names / sizeof names[0] && names[result]);
	assert(!ask->verdict && (v || result == VERIFY_UNKNOWN));
	ask->note.type = VERIFY_ANSWER;
	ask->result = result;
	ask->verdict = verdict_ref(v);
	ask->remembered = remembered;
	metric_cell_add(metric_cell(FAMILY_verifications, names[result], remembered ? "yes" : "no"),
			1);
	loop_post(ask->reply_to, &ask->note);
}

static void answer_all(struct verification *v, struct verdict *verdict)
{
	while (v->asker) {
		struct note *note = v->asker;
		v->asker = note->next;
		answer_asker((struct verify *)note, result_of(verdict), verdict, false);
	}
}

/* --- what is remembered */

static void forget_verification(struct qmgr *q, struct verification *v)
{
	assert(!v->asker);
	assert(!v->verdict || q->verifier.nremembered > 0);
	q->verifier.nremembered -= v->verdict != NULL;
	HASH_DEL(q->verifier.by_key, v);
	list_remove(&v->link);
	verdict_unref(v->verdict);
	free(v->key);
	free(v->way);
	free(v->sender);
	free(v->address);
	free(v);
}

void verifier_keep_to_limit(struct qmgr *q)
{
	struct verifier *f = &q->verifier;
	assert(f->nremembered > 0 || list_empty(&f->remembered));
	while (f->nremembered > verify_settings(q)->cache_limit)
		forget_verification(
			q, list_entry(list_first(&f->remembered), struct verification, link));
}

/* As long as the settings say now, whatever they said when it was heard. */
static int64_t remembered_ms(const struct qmgr *q, const struct verdict *verdict)
{
	const struct conf_verify *c = verify_settings(q);
	return verdict->class == VERDICT_SENT ? c->positive_time : c->negative_time;
}

static void remember_verdict(struct qmgr *q, struct verification *v, struct verdict *verdict)
{
	struct verifier *f = &q->verifier;
	assert(!v->verdict && !v->asker && !v->domain);
	if (result_of(verdict) == VERIFY_UNKNOWN || remembered_ms(q, verdict) == 0) {
		forget_verification(q, v);
		return;
	}
	v->verdict = verdict_ref(verdict);
	v->since_ms = scheduler_now_ms(&q->sched);
	list_append(&f->remembered, &v->link);
	f->nremembered++;
	verifier_keep_to_limit(q);
}

/* --- who waits */

static struct verifier_domain *domain_of(struct verifier *f, const char *address)
{
	const char *name = mailaddr_domain(address);
	struct verifier_domain *d;
	HASH_FIND_STR(f->domains, name, d);
	if (d)
		return d;
	d = mem_zalloc(sizeof *d);
	d->name = mem_strdup(name);
	list_init(&d->waiting);
	list_init(&d->in_turn);
	HASH_ADD_KEYPTR(hh, f->domains, d->name, strlen(d->name), d);
	return d;
}

static void domain_leave(struct verifier *f, struct verifier_domain *d)
{
	assert(d->underway >= 0);
	if (d->underway > 0 || !list_empty(&d->waiting))
		return;
	HASH_DEL(f->domains, d);
	list_remove(&d->in_turn);
	free(d->name);
	free(d);
}

static void wait_in_turn(struct verifier *f, struct verification *v)
{
	assert(!v->verdict && !v->domain);
	v->domain = domain_of(f, v->address);
	list_append(&v->domain->waiting, &v->link);
	if (list_empty(&v->domain->in_turn))
		list_append(&f->turn, &v->domain->in_turn);
	f->nwaiting++;
	f->due = true;
}

/* One that may be asked about now, of the domain whose turn it is; NULL: none. */
static struct verification *next_in_turn(struct verifier *f, int64_t limit)
{
	int64_t of_domain = limit > 1 ? limit / 2 : 1;
	list_each (link, tmp, &f->turn) {
		struct verifier_domain *d = list_entry(link, struct verifier_domain, in_turn);
		assert(!list_empty(&d->waiting));
		if (d->underway >= of_domain)
			continue;
		struct verification *v =
			list_entry(list_first(&d->waiting), struct verification, link);
		list_remove(&v->link);
		list_remove(&d->in_turn);
		if (!list_empty(&d->waiting))
			list_append(&f->turn, &d->in_turn);
		assert(f->nwaiting > 0);
		f->nwaiting--;
		return v;
	}
	return NULL;
}

/* Those that lag leave their places to others. */
static void let_lag(struct qmgr *q, int64_t limit)
{
	struct verifier *f = &q->verifier;
	int64_t before_ms = scheduler_now_ms(&q->sched) - VERIFIER_LAG_MS;
	struct list *first;
	while (f->nlagging < VERIFIER_LAGGING_SCALE * limit && (first = list_first(&f->brisk)) &&
	       list_entry(first, struct verification, link)->since_ms <= before_ms) {
		list_remove(first);
		assert(f->nunderway > 0);
		f->nunderway--;
		f->nlagging++;
	}
}

static void look_again(struct qmgr *q, int64_t limit)
{
	struct verifier *f = &q->verifier;
	struct timers *timers = &q->sched.loop->timers;
	struct list *first = list_first(&f->brisk);
	timer_stop(timers, &f->again);
	if (f->nwaiting > 0 && first && f->nlagging < VERIFIER_LAGGING_SCALE * limit)
		timer_start(timers, &f->again,
			    list_entry(first, struct verification, link)->since_ms +
				    VERIFIER_LAG_MS);
}

static void leave_way(struct verifier *f, struct verification *v)
{
	int64_t *of = list_empty(&v->link) ? &f->nlagging : &f->nunderway;
	assert(v->domain->underway > 0 && *of > 0);
	--*of;
	v->domain->underway--;
	list_remove(&v->link);
}

/* --- the pseudo-message */

static bool is_utf8(const char *text)
{
	while (*text && (unsigned char)*text < 0x80)
		text++;
	return *text;
}

static void take_verdict(struct message *m, uint32_t recipient, struct verdict *verdict)
{
	struct qmgr *q = m->qmgr;
	struct verifying *p = m->verifying;
	assert(recipient < p->nslot);
	struct verification *v = p->slot[recipient];
	assert(v && !v->verdict && v->domain);
	struct verifier_domain *d = v->domain;
	assert(p->nused > 0);
	p->slot[recipient] = NULL;
	p->nused--;
	leave_way(&q->verifier, v);
	q->verifier.due = true;
	v->domain = NULL;
	domain_leave(&q->verifier, d);
	log_event(LOG_LEVEL_DEBUG, "verified", "to", v->address, "relay",
		  verdict->host[0] ? verdict->host : "none", "dsn", verdict->dsn, "reply",
		  log_reply(verdict->code, verdict->text), NULL);
	answer_all(v, verdict);
	remember_verdict(q, v, verdict);
}

static struct verifying *verifying_new(struct qmgr *q, const char *sender, bool utf8, int64_t n)
{
	assert(n > 0 && n <= UINT32_MAX);
	struct verifying *p = mem_zalloc(sizeof *p);
	struct envelope *e = envelope_new();
	e->id = ident_new();
	e->sender = mem_strdup(sender);
	e->smtputf8 = utf8;
	for (int64_t i = 0; i < n; i++)
		envelope_add(e, "");
	p->nslot = (uint32_t)n;
	p->slot = mem_zalloc((size_t)n * sizeof *p->slot);
	p->message = message_pseudo(q, e, p, take_verdict);
	list_append(&q->verifier.messages, &p->link);
	return p;
}

static void verifying_free(struct qmgr *q, struct verifying *p)
{
	list_remove(&p->link);
	message_free(q, p->message);
	free(p->slot);
	free(p);
}

/* One of this sender with a free slot. */
static struct verifying *verifying_of(struct qmgr *q, const struct verification *v, int64_t limit)
{
	bool utf8 = is_utf8(v->address) || is_utf8(v->sender);
	list_each (link, tmp, &q->verifier.messages) {
		struct verifying *p = list_entry(link, struct verifying, link);
		const struct envelope *e = p->message->work.envelope;
		if (p->nused < p->nslot && e->smtputf8 == utf8 && strcmp(e->sender, v->sender) == 0)
			return p;
	}
	return verifying_new(q, v->sender, utf8, limit);
}

static uint32_t take_slot(struct verifying *p, struct verification *v)
{
	assert(p->nused < p->nslot);
	uint32_t i = 0;
	while (p->slot[i])
		i++;
	p->slot[i] = v;
	p->nused++;
	struct recipient *r = &p->message->work.envelope->rcpt[i];
	free(r->address);
	r->address = mem_strdup(v->address);
	return i;
}

static void begin_verification(struct qmgr *q, struct verification *v, int64_t limit)
{
	assert(v->asker && !v->verdict);
	struct verifying *p = verifying_of(q, v, limit);
	struct message *m = p->message;
	uint32_t recipient = take_slot(p, v);
	v->domain->underway++;
	q->verifier.nunderway++;
	v->since_ms = scheduler_now_ms(&q->sched);
	list_append(&q->verifier.brisk, &v->link);
	struct job *job = router_job(m, router_route(m, recipient));
	job->routing++;
	pool_take(job);
	router_add(job, recipient);
	list_each (link, tmp, &m->work.jobs)
		shelf_resize(list_entry(link, struct job, in_message));
}

void verifier_run(struct qmgr *q)
{
	struct verifier *f = &q->verifier;
	struct verification *v;
	if (!f->due)
		return;
	f->due = false;
	list_each (link, tmp, &f->messages) {
		struct verifying *p = list_entry(link, struct verifying, link);
		if (p->nused == 0 && p->message->work.rcpt_count == 0 && p->message->lookups == 0)
			verifying_free(q, p);
	}
	int64_t limit = verify_settings(q)->concurrency_limit;
	let_lag(q, limit);
	while (f->nunderway < limit && (v = next_in_turn(f, limit)))
		begin_verification(q, v, limit);
	look_again(q, limit);
}

/* --- questions */

static const char *sender_of(const struct qmgr *q, const struct verify *ask)
{
	return ask->sender ? ask->sender : verify_settings(q)->sender;
}

static char *way_of(const struct qmgr *q, const char *sender, const char *address)
{
	const struct route *r = route_find(q->routes, sender, address);
	struct buf b = {0};
	nexthop_write_key(&b, r, address);
	nexthop_write_terms(&b, q->sched.conf->tables, r, sender, address);
	return buf_steal(&b, NULL);
}

static struct verification *verification_new(struct verifier *f, const char *key, const char *way,
					     const char *sender, const char *address)
{
	struct verification *v = mem_zalloc(sizeof *v);
	v->key = mem_strdup(key);
	v->way = mem_strdup(way);
	v->sender = mem_strdup(sender);
	v->address = mem_strdup(address);
	list_init(&v->link);
	HASH_ADD_KEYPTR(hh, f->by_key, v->key, strlen(v->key), v);
	return v;
}

/* A host answers for nobody whose mail goes elsewhere by now. True: what is remembered is the answer. */
static bool answer_remembered(struct qmgr *q, struct verification *v, const char *way,
			      struct verify *ask)
{
	if (!v->verdict || ask->fresh || strcmp(v->way, way) != 0)
		return false;
	if (v->since_ms + remembered_ms(q, v->verdict) <= scheduler_now_ms(&q->sched))
		return false;
	list_remove(&v->link);
	list_append(&q->verifier.remembered, &v->link);
	answer_asker(ask, result_of(v->verdict), v->verdict, true);
	return true;
}

static void ask_in_turn(struct qmgr *q, struct verification *v, const char *key, const char *way,
			struct verify *ask)
{
	struct verifier *f = &q->verifier;
	assert(!v || !v->verdict);
	if (!v && f->nwaiting >= VERIFIER_WAITING_MAX) {
		answer_asker(ask, VERIFY_UNKNOWN, NULL, false);
		return;
	}
	if (!v) {
		v = verification_new(f, key, way, sender_of(q, ask), ask->address);
		wait_in_turn(f, v);
	}
	ask->note.next = v->asker;
	v->asker = &ask->note;
}

void verifier_ask(struct qmgr *q, struct verify *ask)
{
	char *key = mem_printf("%s\n%s", sender_of(q, ask), ask->address);
	char *way = way_of(q, sender_of(q, ask), ask->address);
	struct verification *v;
	HASH_FIND_STR(q->verifier.by_key, key, v);
	if (!v || !answer_remembered(q, v, way, ask)) {
		if (v && v->verdict) {
			forget_verification(q, v);
			v = NULL;
		}
		ask_in_turn(q, v, key, way, ask);
	}
	free(way);
	free(key);
}

/* --- the end */

static void drop_askers(struct verification *v)
{
	while (v->asker) {
		struct verify *ask = (struct verify *)v->asker;
		v->asker = ask->note.next;
		verify_free(&ask);
	}
}

void verifier_drop(struct qmgr *q)
{
	list_each (link, tmp, &q->verifier.messages) {
		struct verifying *p = list_entry(link, struct verifying, link);
		message_drop_waiting(p->message);
		verifying_free(q, p);
	}
}

void verifier_fini(struct qmgr *q)
{
	struct verifier *f = &q->verifier;
	struct verification *v, *tmp;
	struct verifier_domain *d, *next_domain;
	timer_stop(&q->sched.loop->timers, &f->again);
	HASH_ITER(hh, f->by_key, v, tmp)
	{
		drop_askers(v);
		forget_verification(q, v);
	}
	HASH_ITER(hh, f->domains, d, next_domain)
	{
		d->underway = 0;
		domain_leave(f, d);
	}
	assert(!f->domains && f->nremembered == 0 && list_empty(&f->messages));
	assert(list_empty(&f->turn) && list_empty(&f->brisk) && list_empty(&f->remembered));
}
