/* SPDX-License-Identifier: ISC */
/* The queue as the scheduler sees it: arrivals as far as there is credit, what is put off until it
 * is due, incoming and deferred by turns. It also is the witness: no recipient may be lost, and
 * none may come to two final verdicts. */
#include "sim/model_inflow.h"
#include "sim/stage.h"

#include "base/clock.h"
#include "base/mem.h"
#include "qmgr/dest/site.h"
#include "qmgr/qmgr_thread.h"
#include "spool/spool.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

enum kept_state { KEPT_INCOMING, KEPT_ACTIVE, KEPT_DEFERRED, KEPT_DUE, KEPT_DONE, KEPT_FOR_EVER };

struct kept {
	struct model_spool *in;
	uint32_t number;
	enum kept_state state;
	struct envelope *envelope; /* while it is not with qmgr */
	uint16_t site;		   /* whose mail it is while it is put off, or 0 */
	bool parked;		   /* it waits for that site */
	bool tried;		   /* a delivery of it has begun */
	struct list link;
	struct model_inflow_row *row; /* of its flow */
	struct timer due;
	struct kept_recipient {
		bool final, put_off, doubted;
	} rcpt[];
};

/* Of the messages that are put off, those of one site. */
struct kept_site {
	uint32_t waiting, parked;
	int first; /* all with a lower number are not parked */
};

struct model_spool {
	struct stage *stage;
	int64_t credit, active, open; /* open: will be tried, now or later */
	int next_arrival;
	struct timer arrive;
	struct model_inflow incoming;
	struct list due;
	bool due_turn;
	struct kept **kept; /* by number */
	struct kept_site site[SPOOL_SITE_MAX + 1];
	struct content_file *blank;
};

static void park_message(struct model_spool *s, struct kept *k, uint16_t number, bool parked)
{
	struct kept_site *site = &s->site[number];
	assert(number <= SPOOL_SITE_MAX && (number > 0 || !parked));
	k->site = number;
	k->parked = parked;
	site->waiting++;
	site->parked += parked;
	if (parked && (int)k->number < site->first)
		site->first = (int)k->number;
}

static void unpark_message(struct model_spool *s, struct kept *k)
{
	assert(!k->parked || s->site[k->site].parked > 0);
	s->site[k->site].parked -= k->parked;
	k->parked = false;
}

static void hand_over(struct model_spool *s, struct kept *k)
{
	assert(k->state == KEPT_INCOMING || k->state == KEPT_DUE);
	if (k->state == KEPT_INCOMING) {
		model_inflow_served(&s->incoming, k->row);
	} else {
		unpark_message(s, k);
		assert(s->site[k->site].waiting > 0);
		s->site[k->site].waiting--;
	}
	model_inflow_hold(&s->incoming, k->row);
	struct spool_arrival *a = mailbox_note(sizeof *a, SPOOL_ARRIVAL);
	a->envelope = k->envelope;
	a->content = content_in_file(s->blank, 0, k->envelope->size);
	k->envelope = NULL;
	k->state = KEPT_ACTIVE;
	list_remove(&k->link);
	assert(s->credit > 0);
	s->credit--;
	s->active++;
	stage_post(s->stage, &a->note);
}

static void feed_qmgr(struct model_spool *s)
{
	while (s->credit > 0) {
		struct model_inflow_row *in = model_inflow_next(&s->incoming, s->credit);
		bool due = !list_empty(&s->due) && model_inflow_spare(&s->incoming, s->credit);
		if (!due && !in)
			return;
		if (due && in)
			s->due_turn = !s->due_turn;
		struct list *from = due && (!in || s->due_turn) ? &s->due : &in->waiting;
		hand_over(s, list_entry(list_first(from), struct kept, link));
	}
}

static void make_due(struct model_spool *s, struct kept *k)
{
	assert(k->state == KEPT_DEFERRED && k->envelope);
	k->state = KEPT_DUE;
	list_append(&s->due, &k->link);
}

static void on_due(void *owner)
{
	struct kept *k = owner;
	make_due(k->in, k);
	feed_qmgr(k->in);
}

/* As the scheduler is told; NULL: it takes that of the sender, who is the same for all. */
static const char *flow_of(const struct model_spool *s, const struct arrival *a)
{
	return s->stage->scenario->one_flow ? NULL : a->flow;
}

static void take_in(struct model_spool *s, int number)
{
	const struct arrival *a = &s->stage->arrivals->item[number];
	struct kept *k = mem_zalloc(sizeof *k + a->nrcpt * sizeof k->rcpt[0]);
	k->in = s;
	k->number = (uint32_t)number;
	timer_init(&k->due, on_due, k);
	struct envelope *e = k->envelope = envelope_new();
	e->id = (uint64_t)number + 1;
	e->arrived_ms = clock_wall_ms();
	e->sender = mem_strdup("sender@sim.test");
	e->flow = flow_of(s, a) ? mem_strdup(a->flow) : NULL;
	e->size = a->size;
	for (uint32_t i = 0; i < a->nrcpt; i++) {
		char address[320];
		snprintf(address, sizeof address, "r%u@%s", i, a->domain[i]);
		envelope_add(e, address);
	}
	assert(!s->kept[number]);
	s->kept[number] = k;
	s->open++;
	k->row = model_inflow_row(&s->incoming, flow_of(s, a));
	list_append(&k->row->waiting, &k->link);
	s->stage->tally->messages++;
	s->stage->tally->recipients += a->nrcpt;
}

static void wait_for_next(struct model_spool *s)
{
	const struct arrivals *a = s->stage->arrivals;
	if (s->next_arrival < a->n)
		stage_after(s->stage, &s->arrive,
			    a->item[s->next_arrival].at_us - s->stage->world->now_us);
}

static void on_arrive(void *owner)
{
	struct model_spool *s = owner;
	const struct arrivals *a = s->stage->arrivals;
	while (s->next_arrival < a->n && a->item[s->next_arrival].at_us <= s->stage->world->now_us)
		take_in(s, s->next_arrival++);
	wait_for_next(s);
	feed_qmgr(s);
}

struct model_spool *model_spool_new(struct stage *st)
{
	struct model_spool *s = mem_zalloc(sizeof *s);
	s->stage = st;
	s->kept = mem_zalloc((size_t)(st->arrivals->n + 1) * sizeof(struct kept *));
	s->blank = model_disk_blank();
	model_inflow_init(&s->incoming, st->scenario->conf);
	list_init(&s->due);
	timer_init(&s->arrive, on_arrive, s);
	wait_for_next(s);
	return s;
}

void model_spool_free(struct model_spool **sp)
{
	struct model_spool *s = *sp;
	for (int i = 0; i < s->next_arrival; i++) {
		envelope_free(&s->kept[i]->envelope);
		free(s->kept[i]);
	}
	content_file_unref(s->blank);
	model_inflow_fini(&s->incoming);
	free(s->kept);
	free(s);
	*sp = NULL;
}

/* The message that a note speaks of: it must be with qmgr. */
static struct kept *find_active(struct model_spool *s, uint64_t id, const char *note)
{
	if (id >= 1 && id <= (uint64_t)s->next_arrival && s->kept[id - 1]->state == KEPT_ACTIVE)
		return s->kept[id - 1];
	tally_fault(s->stage->tally, "%s of message %d, which is not being worked on", note,
		    (int)id);
	return NULL;
}

static int64_t age_ms(const struct model_spool *s, const struct kept *k)
{
	return (s->stage->world->now_us - s->stage->arrivals->item[k->number].at_us) / 1000;
}

int64_t model_spool_tried(struct model_spool *s, uint64_t id)
{
	struct kept *k = find_active(s, id, "a delivery");
	bool first = k && !k->tried;
	if (k)
		k->tried = true;
	return first ? age_ms(s, k) : -1;
}

static void check_patience(struct model_spool *s, struct kept *k, uint32_t i)
{
	int64_t patience = s->stage->scenario->simulation.patience;
	if (!k->rcpt[i].put_off && !k->rcpt[i].final && patience > 0 && age_ms(s, k) > patience)
		tally_fault(s->stage->tally,
			    "recipient %u of message %u had no verdict for %d seconds", i,
			    k->number + 1, (int)(age_ms(s, k) / 1000));
}

static void wait_of_site(struct model_spool *s, const struct kept *k, uint32_t i)
{
	const struct arrival *a = &s->stage->arrivals->item[k->number];
	struct tally_site *site = tally_site_of(s->stage->tally, a->domain[i]);
	if (site)
		numbers_add(&site->waits, age_ms(s, k));
}

static void finish_recipient(struct model_spool *s, struct kept *k, uint32_t i,
			     enum verdict_class class)
{
	const struct arrival *a = &s->stage->arrivals->item[k->number];
	struct tally *t = s->stage->tally;
	if (i >= a->nrcpt || k->rcpt[i].final ||
	    (class != VERDICT_SENT && class != VERDICT_FAILED)) {
		tally_fault(t, "recipient %u of message %u: a second final verdict, or none", i,
			    k->number + 1);
		return;
	}
	check_patience(s, k, i);
	k->rcpt[i].final = true;
	if (class == VERDICT_SENT) {
		t->sent++;
		numbers_add(&t->sent_at, s->stage->world->now_us / 1000);
		tally_wait(t, a->nrcpt, a->size, age_ms(s, k));
		wait_of_site(s, k, i);
		if (a->flow) {
			numbers_add(&tally_flow(t, a->flow)->waits, age_ms(s, k));
			tally_fate(t, a->flow, a->domain[i], a->at_us / 1000, age_ms(s, k));
		}
		if (!k->rcpt[i].doubted)
			numbers_add(&t->sure, age_ms(s, k));
	} else {
		t->failed++;
	}
}

static void take_verdicts(struct model_spool *s, struct spool_delivered *d)
{
	struct kept *k = find_active(s, d->id, "verdicts");
	for (uint32_t i = 0; i < d->n; i++) {
		/* That it is in doubt is recorded, and is not the end. */
		if (k && d->of[i].verdict->class != VERDICT_IN_DOUBT)
			finish_recipient(s, k, d->of[i].recipient, d->of[i].verdict->class);
		verdict_unref(d->of[i].verdict);
	}
	free(d);
}

/* A recipient that was never tried goes where the scheduler says that it waits for. */
static void put_off_at_site(struct model_spool *s, const struct kept *k, uint32_t i,
			    uint16_t number, enum cause cause)
{
	struct tally *t = s->stage->tally;
	const struct site *waits_for = number ? s->stage->q->db.numbered[number] : NULL;
	struct tally_site *site = tally_site_of(t, s->stage->arrivals->item[k->number].domain[i]);
	if (!site && waits_for)
		site = tally_site(t, waits_for->key);
	if (!site)
		return;
	site->deferrals[cause]++;
	site->deferred += !k->rcpt[i].put_off;
}

/* Put a message off after the last round: each recipient has a verdict, tried or not. number: of the site
 * that it waits for. */
static void put_off(struct model_spool *s, struct kept *k, const struct envelope *e,
		    uint16_t number)
{
	struct tally *t = s->stage->tally;
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		const struct recipient *r = &e->rcpt[i];
		if (r->done != k->rcpt[i].final)
			tally_fault(t, "recipient %u of message %u: its verdict was not recorded",
				    i, k->number + 1);
		if (r->done)
			continue;
		if (!r->last) {
			tally_fault(t, "recipient %u of message %u was put off without a verdict",
				    i, k->number + 1);
			continue;
		}
		check_patience(s, k, i);
		if (r->last->class == VERDICT_IN_DOUBT) {
			t->in_doubt++;
			k->rcpt[i].doubted = true;
		}
		t->deferrals[cause_of(r->last)]++;
		t->deferred += !k->rcpt[i].put_off;
		put_off_at_site(s, k, i, number, cause_of(r->last));
		k->rcpt[i].put_off = true;
	}
}

/* A message that is never tried again waits for no site either. */
static void keep_released(struct model_spool *s, struct kept *k, const struct spool_release *r)
{
	assert(k->state == KEPT_ACTIVE && !k->envelope);
	struct envelope *e = r->envelope;
	put_off(s, k, e, r->site);
	k->envelope = e;
	if (!s->stage->scenario->simulation.retries) {
		k->state = KEPT_FOR_EVER;
		assert(s->open > 0);
		s->open--;
		return;
	}
	k->state = KEPT_DEFERRED;
	park_message(s, k, r->site, r->parked);
	stage_after(s->stage, &k->due, stage_us(e->due_ms - clock_wall_ms()));
}

static void finish_message(struct model_spool *s, struct kept *k)
{
	assert(k->state == KEPT_ACTIVE);
	for (uint32_t i = 0; i < s->stage->arrivals->item[k->number].nrcpt; i++)
		if (!k->rcpt[i].final)
			tally_fault(s->stage->tally, "recipient %u of message %u is lost", i,
				    k->number + 1);
	k->state = KEPT_DONE;
	assert(s->open > 0);
	s->open--;
	s->stage->tally->done++;
}

/* Its release says so. */
static void finish_all(struct model_spool *s, struct kept *k)
{
	uint32_t n = s->stage->arrivals->item[k->number].nrcpt;
	for (uint32_t i = 0; i < n; i++)
		finish_recipient(s, k, i, VERDICT_SENT);
}

static void take_release(struct model_spool *s, struct spool_release *r)
{
	struct kept *k = find_active(s, r->id, "a release");
	if (k) {
		if (r->delivers)
			finish_all(s, k);
		assert(s->active > 0);
		s->active--;
		s->credit++;
		model_inflow_let_go(&s->incoming, k->row);
		list_init(&k->link);
		if (r->envelope)
			keep_released(s, k, r);
		else
			finish_message(s, k);
	} else {
		envelope_free(&r->envelope);
	}
	free(r);
	feed_qmgr(s);
}

/* Numbers rise with age, so that the oldest are met first. */
static void unpark_oldest(struct model_spool *s, struct spool_unpark *u)
{
	struct kept_site *site = &s->site[u->site];
	assert(u->site > 0 && u->site <= SPOOL_SITE_MAX);
	int n = site->first;
	for (uint32_t most = u->most; most > 0 && site->parked > 0; n++) {
		assert(n < s->next_arrival);
		struct kept *k = s->kept[n];
		if (!k->parked || k->site != u->site)
			continue;
		unpark_message(s, k);
		most--;
		if (k->state == KEPT_DEFERRED) {
			timer_stop(&s->stage->world->events, &k->due);
			make_due(s, k);
		}
	}
	site->first = site->parked > 0 ? n : s->stage->arrivals->n;
	u->parked = site->parked;
	u->waiting = site->waiting;
	stage_post(s->stage, &u->note);
	feed_qmgr(s);
}

void model_spool_note(void *context, struct note *note)
{
	struct model_spool *s = ((struct stage *)context)->spool;
	switch (note->type) {
	case SPOOL_CREDIT:
		s->credit += ((struct spool_credit *)note)->n;
		free(note);
		feed_qmgr(s);
		break;
	case SPOOL_DELIVERED:
		take_verdicts(s, (struct spool_delivered *)note);
		break;
	case SPOOL_RELEASE:
		take_release(s, (struct spool_release *)note);
		break;
	case SPOOL_UNPARK:
		unpark_oldest(s, (struct spool_unpark *)note);
		break;
	case SPOOL_STORE:
		model_disk_store(s->stage, (struct spool_store *)note);
		break;
	default:
		tally_fault(s->stage->tally, "a note of type %d to the spool", note->type);
		free(note);
	}
}

bool model_spool_done(const struct model_spool *s)
{
	return s->open == 0 && s->next_arrival == s->stage->arrivals->n;
}

int64_t model_spool_active(const struct model_spool *s)
{
	return s->active;
}

void model_spool_end(struct model_spool *s)
{
	for (int n = 0; n < s->next_arrival; n++) {
		struct kept *k = s->kept[n];
		for (uint32_t i = 0; i < s->stage->arrivals->item[n].nrcpt; i++) {
			const struct arrival *a = &s->stage->arrivals->item[n];
			check_patience(s, k, i);
			if (!k->rcpt[i].final && a->flow)
				tally_fate(s->stage->tally, a->flow, a->domain[i], a->at_us / 1000,
					   -1);
			if (!k->rcpt[i].final && !k->rcpt[i].doubted)
				numbers_add(&s->stage->tally->sure, age_ms(s, k));
		}
	}
}
