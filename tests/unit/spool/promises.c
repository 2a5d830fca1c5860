/* SPDX-License-Identifier: ISC */
#include "tests/unit/spool/promises.h"

#include "base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct promise *promises_find(struct promises *b, uint64_t id)
{
	for (int i = 0; i < b->n; i++)
		if (b->promise[i].id == id)
			return &b->promise[i];
	return NULL;
}

static struct fate fate_of(const struct recipient *r)
{
	struct fate f = {.done = r->done, .tries = r->tries};
	if (r->last) {
		f.class = (int)r->last->class;
		f.serial = atoi(r->last->text);
	}
	return f;
}

static struct version version_of(const struct envelope *e)
{
	struct version v = {.rounds = e->rounds, .due_ms = e->due_ms, .warned = e->warned};
	for (uint32_t i = 0; i < e->nrcpt; i++)
		v.rcpt[i] = fate_of(&e->rcpt[i]);
	return v;
}

struct promise *promises_new_promise(struct promises *b, uint64_t id, int64_t arrived_ms,
				     uint64_t salt)
{
	assert(b->n < PROMISES);
	struct promise *l = &b->promise[b->n++];
	*l = (struct promise){.id = id,
			      .salt = salt,
			      .arrived_ms = arrived_ms,
			      .state = PROMISE_OFFERED,
			      .seen = true,
			      .nversion = 1};
	l->version[0].seq = l->since = b->seq++;
	return l;
}

struct verdict *promises_verdict(struct promises *b, enum verdict_class class)
{
	static const int code[] = {250, 450, 550, 0};
	char text[20];
	snprintf(text, sizeof text, "%d said", ++b->serial);
	return verdict_new(class, code[class], NULL, "mx.test[192.0.2.1]:25", text);
}

void promises_said(struct promises *b, struct promise *l, uint32_t rcpt, const struct verdict *v)
{
	assert(l->nsaid < PROMISE_SAID);
	l->said[l->nsaid++] = (struct said){
		.seq = b->seq++, .rcpt = rcpt, .class = (int)v->class, .serial = atoi(v->text)};
}

bool promises_room(const struct promise *l)
{
	return l->nversion - l->firm < PROMISE_VERSIONS;
}

bool promises_kept(struct promises *b, struct promise *l, const struct envelope *e)
{
	if (!promises_room(l))
		return false;
	memmove(l->version, &l->version[l->firm],
		(size_t)(l->nversion - l->firm) * sizeof l->version[0]);
	l->nversion -= l->firm;
	l->firm = 0;
	l->version[l->nversion] = version_of(e);
	l->version[l->nversion++].seq = b->seq++;
	return true;
}

void promises_finish(struct promises *b, struct promise *l, bool delivers)
{
	l->finish = b->seq++;
	l->delivers = delivers;
}

/* What a killed process had been told, and nobody has seen since, may never have been written. */
static bool known(const struct promise *l, uint32_t before)
{
	return l->seen && l->since < before;
}

void promises_firm_verdicts(struct promises *b, uint32_t before)
{
	for (int i = 0; i < b->n; i++) {
		struct promise *l = &b->promise[i];
		if (!known(l, before))
			continue;
		for (int k = 0; k < l->nsaid; k++)
			l->said[k].firm |= l->said[k].seq < before;
		l->finished |= l->delivers && l->finish && l->finish < before;
	}
}

void promises_firm_all(struct promises *b, uint32_t before)
{
	promises_firm_verdicts(b, before);
	for (int i = 0; i < b->n; i++) {
		struct promise *l = &b->promise[i];
		if (!known(l, before))
			continue;
		while (l->firm + 1 < l->nversion && l->version[l->firm + 1].seq < before)
			l->firm++;
		l->finished |= l->finish && l->finish < before;
	}
}

static struct fate with(struct fate f, const struct said *s, uint8_t notify)
{
	f.class = s->class;
	f.serial = s->serial;
	f.tries++;
	f.done = s->class == VERDICT_FAILED ||
		 (s->class == VERDICT_SENT && !(notify & NOTIFY_SUCCESS));
	return f;
}

static bool same_fate(const struct fate *a, const struct fate *b)
{
	return a->done == b->done && a->serial == b->serial && a->class == b->class &&
	       a->tries == b->tries;
}

static const struct said *said_since(const struct promise *l, const struct version *v,
				     uint32_t rcpt)
{
	for (int i = 0; i < l->nsaid; i++)
		if (l->said[i].rcpt == rcpt && l->said[i].seq > v->seq)
			return &l->said[i];
	return NULL;
}

/* Whether the envelope can have come of this version and the verdicts since. */
static bool comes_of(const struct promise *l, const struct version *v, const struct envelope *e)
{
	if (e->rounds != v->rounds || e->warned != v->warned)
		return false;
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		const struct said *s = said_since(l, v, i);
		struct fate is = fate_of(&e->rcpt[i]);
		struct fate then = s ? with(v->rcpt[i], s, e->rcpt[i].notify) : v->rcpt[i];
		if (!same_fate(&is, &then) && (!s || s->firm || !same_fate(&is, &v->rcpt[i])))
			return false;
	}
	return true;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_recipient(const struct recipient *a, const struct recipient *b)
{
	return same_text(a->address, b->address) && same_text(a->orcpt, b->orcpt) &&
	       a->notify == b->notify;
}

static bool same_message(const struct envelope *a, const struct envelope *b)
{
	bool same = a->id == b->id && a->arrived_ms == b->arrived_ms && a->size == b->size &&
		    same_text(a->sender, b->sender) && same_text(a->envid, b->envid) &&
		    same_text(a->flow, b->flow) && same_text(a->user, b->user) &&
		    same_text(a->client, b->client) && a->ret == b->ret && a->body == b->body &&
		    a->smtputf8 == b->smtputf8 && a->nrcpt == b->nrcpt &&
		    a->not_before_ms == b->not_before_ms && a->hold_asked == b->hold_asked &&
		    a->hold_for == b->hold_for;
	for (uint32_t i = 0; same && i < a->nrcpt; i++)
		same = same_recipient(&a->rcpt[i], &b->rcpt[i]);
	return same;
}

/* The latest version that it can have come of, or -1. */
static int origin(const struct promise *l, const struct envelope *e)
{
	for (int i = l->nversion - 1; i >= l->firm; i--)
		if (comes_of(l, &l->version[i], e))
			return i;
	return -1;
}

const char *promises_check(const struct promises *b, const struct promise *l,
			   const struct envelope *e)
{
	struct envelope *first = promise_envelope(l);
	bool same = same_message(first, e);
	envelope_free(&first);
	if (!same)
		return "its envelope is another one";
	if (b->vague)
		return NULL;
	if (l->state == PROMISE_GONE)
		return "it was gone, and is back";
	if (l->finished)
		return "it was finished, and that was synced";
	return origin(l, e) < 0 ? "its recipients are in a state that was lost or never was" : NULL;
}

void promises_started(struct promises *b, bool after_cut)
{
	b->after_cut = after_cut;
	for (int i = 0; i < b->n; i++)
		b->promise[i].seen = false;
}

/* Verdicts that are not there have never been recorded. */
static void drop_unheard(struct promise *l, const struct envelope *e)
{
	int kept = 0;
	for (int i = 0; i < l->nsaid; i++) {
		const struct said *s = &l->said[i];
		const struct verdict *last = e->rcpt[s->rcpt].last;
		if (last && atoi(last->text) == s->serial)
			l->said[kept++] = *s;
	}
	l->nsaid = kept;
}

const char *promises_seen(struct promises *b, struct promise *l, const struct envelope *e)
{
	const char *wrong = promises_check(b, l, e);
	if (wrong)
		return wrong;
	if (l->state == PROMISE_REFUSED && !b->tail_left && !b->vague)
		return "it was refused, and is there all the same";
	l->seen = true;
	l->since = b->seq++;
	l->state = PROMISE_STORED;
	/* What said that it was done may only have been out of reach. */
	l->deleting = b->vague && (l->deleting || l->finish || l->nsaid > 0);
	l->finish = 0;
	l->delivers = false;
	if (b->after_cut || b->vague) {
		l->version[0] = version_of(e);
		l->version[0].seq = b->seq++;
		l->nversion = 1;
		l->firm = l->nsaid = 0;
		return NULL;
	}
	l->nversion = origin(l, e) + 1;
	drop_unheard(l, e);
	return NULL;
}

/* All its recipients may be done: what is left of it is written off at the start. */
static bool may_be_done(const struct promise *l)
{
	struct envelope *e = promise_envelope(l);
	bool all = true;
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		bool done = false;
		for (int k = l->firm; k < l->nversion; k++) {
			const struct said *s = said_since(l, &l->version[k], i);
			done |= l->version[k].rcpt[i].done;
			done |= s && with(l->version[k].rcpt[i], s, e->rcpt[i].notify).done;
		}
		all &= done;
	}
	envelope_free(&e);
	return all;
}

const char *promises_absent(struct promises *b, struct promise *l)
{
	l->seen = true;
	l->since = b->seq++;
	if (l->state == PROMISE_STORED && !l->finish && !l->deleting && !may_be_done(l))
		return "it was stored, and is lost";
	if (b->after_cut || l->finished || l->state == PROMISE_REFUSED)
		l->state = l->state == PROMISE_REFUSED ? PROMISE_REFUSED : PROMISE_GONE;
	else if (l->state != PROMISE_GONE && !l->finish)
		l->finish = b->seq++;
	return NULL;
}
