/* SPDX-License-Identifier: ISC */
#include "spool/payload.h"

#include "base/mem.h"
#include "spool/bytes.h"
#include "spool/verdicts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
	SMTPUTF8 = 1,
	WARNED = 2,
	OWN_FILE = 4,
	ENVID = 8,
	HELD = 16,
	HISTORY = 32,
	RETURNED = 64,
	SUMMED = 128,
}; /* of an envelope */
enum {
	TLS = 15,
	ORIGIN = 16,
	FLOW = 32,
	PARTNER = 64,
	ARCHIVE = 128
}; /* what the sender wants of TLS, and beside it */
enum {
	BY = 15,
	NOT_BEFORE = 16,
	HOLD_FOR = 32
}; /* of the byte behind the sum: when it is to be delivered */
enum { DONE = 1, ORCPT = 2, VERDICT = 4, DOUBTS = 3 }; /* of a recipient; a shift */
enum { RECIPIENT_MIN = 10, PARTNER_BYTES = 8 };	       /* bytes */

static_assert((int)ENVELOPE_TLS_WAIVED <= (int)TLS, "it has so many bits");
static_assert(RECIPIENT_DOUBTS_MAX << DOUBTS <= UINT8_MAX, "it has what is left of a byte");

static bool has_origin(const struct envelope *e)
{
	return e->user || e->client;
}

static void put_head(struct buf *b, const struct envelope *e, const struct content_place *c,
		     uint32_t generation)
{
	assert(e->tls <= ENVELOPE_TLS_WAIVED && !(e->by & ~BY));
	assert(e->priority >= -ENVELOPE_PRIORITY_MAX && e->priority <= ENVELOPE_PRIORITY_MAX);
	uint8_t *p = (uint8_t *)buf_reserve(b, PAYLOAD_ENVELOPE_HEAD);
	memset(p, 0, PAYLOAD_ENVELOPE_HEAD);
	p[0] = (uint8_t)((e->smtputf8 ? SMTPUTF8 : 0) | (e->warned ? WARNED : 0) |
			 (c->own_file ? OWN_FILE : 0) | (e->envid ? ENVID : 0) |
			 (e->held ? HELD : 0) | (e->returned ? RETURNED : 0) |
			 (e->nhistory > 0 ? HISTORY : 0) | (e->summed ? SUMMED : 0));
	p[1] = e->ret;
	p[2] = e->body;
	p[3] = (uint8_t)(e->tls | (c->partner ? PARTNER : 0) | (e->archive ? ARCHIVE : 0) |
			 (e->flow ? FLOW : 0) | (has_origin(e) ? ORIGIN : 0));
	put_le(p + 4, e->rounds, 4);
	put_le(p + 8, c->seq, 8);
	put_le(p + 16, c->offset, 8);
	put_le(p + 24, e->size, 8);
	put_le(p + 32, (uint64_t)e->arrived_ms, 8);
	put_le(p + 40, (uint64_t)e->due_ms, 8);
	put_le(p + 48, e->nrcpt, 4);
	put_le(p + 52, generation, 4);
	put_le(p + 56, e->sum, 4);
	p[60] = (uint8_t)((e->by & BY) | (e->not_before_ms > 0 ? NOT_BEFORE : 0) |
			  (e->not_before_ms > 0 && e->hold_for ? HOLD_FOR : 0));
	p[61] = (uint8_t)e->priority;
	buf_commit(b, PAYLOAD_ENVELOPE_HEAD);
}

static void put_partner(struct buf *b, uint64_t id)
{
	put_le((uint8_t *)buf_reserve(b, PARTNER_BYTES), id, PARTNER_BYTES);
	buf_commit(b, PARTNER_BYTES);
}

static void put_origin(struct buf *b, const struct envelope *e)
{
	verdicts_put_text(b, e->user ? e->user : "");
	verdicts_put_text(b, e->client ? e->client : "");
}

static void put_time(struct buf *b, int64_t ms)
{
	put_le((uint8_t *)buf_reserve(b, 8), (uint64_t)ms, 8);
	buf_commit(b, 8);
}

static void put_times(struct buf *b, const struct envelope *e)
{
	if (e->by)
		put_time(b, e->by_ms);
	if (e->not_before_ms <= 0)
		return;
	put_time(b, e->not_before_ms);
	put_time(b, e->hold_asked);
}

static void put_recipient(struct buf *b, const struct recipient *r, uint32_t verdict)
{
	assert(r->doubts <= RECIPIENT_DOUBTS_MAX);
	uint8_t *p = (uint8_t *)buf_reserve(b, 6);
	p[0] = (uint8_t)((r->done ? DONE : 0) | (r->orcpt ? ORCPT : 0) | (r->last ? VERDICT : 0) |
			 r->doubts << DOUBTS);
	p[1] = r->notify;
	put_le(p + 2, r->tries, 4);
	buf_commit(b, 6);
	if (r->last)
		verdicts_put_number(b, verdict);
	verdicts_put_text(b, r->address);
	if (r->orcpt)
		verdicts_put_text(b, r->orcpt);
}

static void put_history(struct buf *b, const struct envelope *e, struct verdicts *table)
{
	assert(e->nhistory <= ENVELOPE_HISTORY_MAX); /* else no start could read it */
	verdicts_put_number(b, e->nhistory);
	for (uint32_t i = 0; i < e->nhistory; i++) {
		const struct history *h = &e->history[i];
		assert(h->recipient < e->nrcpt);
		verdicts_put_number(b, h->round);
		verdicts_put_number(b, h->recipient);
		verdicts_put_number(b, h->nrcpt);
		verdicts_put_number(b, verdicts_add(table, h->verdict));
	}
}

void payload_put_envelope(struct buf *b, const struct envelope *e, const struct content_place *c,
			  uint32_t generation)
{
	put_head(b, e, c, generation);
	if (c->partner)
		put_partner(b, c->partner);
	verdicts_put_text(b, e->sender);
	if (e->envid)
		verdicts_put_text(b, e->envid);
	if (e->flow)
		verdicts_put_text(b, e->flow);
	if (has_origin(e))
		put_origin(b, e);
	put_times(b, e);
	struct verdicts table;
	verdicts_begin(&table, b);
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (e->rcpt[i].last)
			verdicts_add(&table, e->rcpt[i].last);
	for (uint32_t i = 0; i < e->nhistory; i++)
		verdicts_add(&table, e->history[i].verdict);
	verdicts_end(&table);
	/* Numbers are given out in the order of the first walk, so the second finds the same. */
	const uint32_t n = table.n;
	verdicts_again(&table);
	for (uint32_t i = 0; i < e->nrcpt; i++)
		put_recipient(b, &e->rcpt[i],
			      e->rcpt[i].last ? verdicts_add(&table, e->rcpt[i].last) : 0);
	if (e->nhistory > 0)
		put_history(b, e, &table);
	assert(table.n == n); /* else no start could read it */
}

bool payload_get_envelope_head(const void *data, size_t len, struct envelope_head *h)
{
	const uint8_t *p = data;
	if (len < PAYLOAD_ENVELOPE_HEAD)
		return false;
	h->content.own_file = p[0] & OWN_FILE;
	h->rounds = (uint32_t)get_le(p + 4, 4);
	h->content.seq = get_le(p + 8, 8);
	h->content.offset = get_le(p + 16, 8);
	h->size = get_le(p + 24, 8);
	h->due_ms = (int64_t)get_le(p + 40, 8);
	h->generation = (uint32_t)get_le(p + 52, 4);
	h->held = p[0] & HELD;
	const bool has_partner = p[3] & PARTNER && len >= PAYLOAD_ENVELOPE_HEAD + PARTNER_BYTES;
	h->content.partner = has_partner ? get_le(p + PAYLOAD_ENVELOPE_HEAD, PARTNER_BYTES) : 0;
	return true;
}

static char *some_text(struct cursor *c)
{
	char *text = cursor_text(c);
	if (text && *text)
		return text;
	free(text);
	return NULL;
}

static void get_origin(struct cursor *c, struct envelope *e)
{
	e->user = some_text(c);
	e->client = some_text(c);
}

/* Which there are is known from the byte that says so. */
static void get_times(struct cursor *c, struct envelope *e, uint8_t which)
{
	if (e->by)
		e->by_ms = (int64_t)cursor_number(c, 8);
	if (!(which & NOT_BEFORE))
		return;
	e->not_before_ms = (int64_t)cursor_number(c, 8);
	e->hold_asked = (int64_t)cursor_number(c, 8);
	e->hold_for = which & HOLD_FOR;
}

static bool get_recipient(struct cursor *c, struct envelope *e, struct verdict **table, uint32_t n)
{
	uint8_t flags = (uint8_t)cursor_number(c, 1);
	uint8_t notify = (uint8_t)cursor_number(c, 1);
	uint32_t tries = (uint32_t)cursor_number(c, 4);
	uint32_t verdict = flags & VERDICT ? (uint32_t)cursor_number(c, 4) : 0;
	char *address = cursor_text(c);
	if (!address)
		return false;
	struct recipient *r = envelope_add(e, address);
	free(address);
	r->notify = notify;
	r->done = flags & DONE;
	r->tries = tries;
	r->doubts = flags >> DOUBTS;
	if (flags & ORCPT)
		r->orcpt = cursor_text(c);
	if (flags & VERDICT && verdict >= n)
		c->bad = true;
	else if (flags & VERDICT)
		r->last = verdict_ref(table[verdict]);
	return !c->bad;
}

static bool get_history(struct cursor *c, struct envelope *e, struct verdict **table, uint32_t n)
{
	uint64_t entries = cursor_number(c, 4);
	bool ok = entries <= ENVELOPE_HISTORY_MAX;
	for (uint64_t i = 0; ok && i < entries; i++) {
		struct history h = {.round = (uint32_t)cursor_number(c, 4),
				    .recipient = (uint32_t)cursor_number(c, 4),
				    .nrcpt = (uint32_t)cursor_number(c, 4)};
		uint64_t verdict = cursor_number(c, 4);
		ok = !c->bad && verdict < n && h.recipient < e->nrcpt;
		if (ok) {
			h.verdict = table[verdict];
			envelope_add_history(e, &h);
		}
	}
	return ok;
}

static struct envelope *get_head(uint64_t id, const uint8_t *p)
{
	struct envelope *e = envelope_new();
	e->id = id;
	e->smtputf8 = p[0] & SMTPUTF8;
	e->warned = p[0] & WARNED;
	e->held = p[0] & HELD;
	e->returned = p[0] & RETURNED;
	e->ret = p[1];
	e->body = p[2];
	uint8_t tls = p[3] & TLS;
	e->tls = tls <= ENVELOPE_TLS_WAIVED ? tls : ENVELOPE_TLS_USUAL;
	e->archive = p[3] & ARCHIVE;
	e->rounds = (uint32_t)get_le(p + 4, 4);
	e->size = get_le(p + 24, 8);
	e->arrived_ms = (int64_t)get_le(p + 32, 8);
	e->due_ms = (int64_t)get_le(p + 40, 8);
	e->summed = p[0] & SUMMED;
	e->sum = e->summed ? (uint32_t)get_le(p + 56, 4) : 0;
	e->by = p[60] & BY;
	int8_t priority = (int8_t)p[61];
	bool known = priority >= -ENVELOPE_PRIORITY_MAX && priority <= ENVELOPE_PRIORITY_MAX;
	e->priority = known ? priority : 0;
	return e;
}

struct envelope *payload_get_envelope(uint64_t id, const void *data, size_t len)
{
	const uint8_t *p = data;
	if (len < PAYLOAD_ENVELOPE_HEAD)
		return NULL;
	struct envelope *e = get_head(id, p);
	struct cursor c = {.at = p + PAYLOAD_ENVELOPE_HEAD, .left = len - PAYLOAD_ENVELOPE_HEAD};
	if (p[3] & PARTNER && cursor_number(&c, 4) + cursor_number(&c, 4) == 0)
		c.bad = true;
	e->sender = cursor_text(&c);
	if (p[0] & ENVID)
		e->envid = cursor_text(&c);
	if (p[3] & FLOW)
		e->flow = cursor_text(&c);
	if (p[3] & ORIGIN)
		get_origin(&c, e);
	get_times(&c, e, p[60]);
	uint32_t n;
	struct verdict **table = verdicts_get(&c, &n);
	uint64_t nrcpt = get_le(p + 48, 4);
	bool ok = table && nrcpt <= c.left / RECIPIENT_MIN;
	for (uint64_t i = 0; ok && i < nrcpt; i++)
		ok = get_recipient(&c, e, table, n);
	if (ok && p[0] & HISTORY)
		ok = get_history(&c, e, table, n);
	verdicts_free(table, n);
	if (!ok || c.bad || c.left > 0)
		envelope_free(&e);
	return e;
}

void payload_put_start(struct buf *b, uint32_t generation)
{
	verdicts_put_number(b, generation);
}

bool payload_get_start(const void *data, size_t len, uint32_t *generation)
{
	if (len != PAYLOAD_START)
		return false;
	*generation = (uint32_t)get_le(data, 4);
	return true;
}

void payload_put_finish(struct buf *b, uint64_t partner)
{
	uint8_t id[PAYLOAD_FINISH];
	put_le(id, partner, PAYLOAD_FINISH);
	buf_append(b, id, partner ? PAYLOAD_FINISH : 0);
}

uint64_t payload_get_finish(const void *data, size_t len)
{
	return len == PAYLOAD_FINISH ? get_le(data, PAYLOAD_FINISH) : 0;
}

void payload_put_finish_to(struct buf *b, uint32_t generation)
{
	verdicts_put_number(b, generation);
}

bool payload_get_finish_to(const void *data, size_t len, uint32_t *generation)
{
	if (len != PAYLOAD_FINISH_SOME)
		return false;
	*generation = (uint32_t)get_le(data, 4);
	return true;
}

bool payload_get_start_1(const void *data, size_t len, uint64_t *seq, uint64_t *offset)
{
	if (len != PAYLOAD_START_1)
		return false;
	*seq = get_le(data, 8);
	*offset = get_le((const uint8_t *)data + 8, 8);
	return true;
}

void payload_set_synced(uint8_t payload[PAYLOAD_SYNCED], uint64_t offset)
{
	put_le(payload, offset, PAYLOAD_SYNCED);
}

bool payload_get_synced(const void *data, size_t len, uint64_t *offset)
{
	if (len != PAYLOAD_SYNCED)
		return false;
	*offset = get_le(data, PAYLOAD_SYNCED);
	return true;
}

static void put_pair(struct buf *b, uint32_t recipient, uint32_t verdict)
{
	verdicts_put_number(b, recipient);
	verdicts_put_number(b, verdict);
}

/* A pair that is there twice is settled: who does not know that reads the same verdict again, of the same attempt. */
void payload_put_delivery(struct buf *b, const struct spool_delivered *d, uint32_t generation)
{
	struct verdicts table;
	verdicts_put_number(b, generation);
	verdicts_begin(&table, b);
	for (uint32_t i = 0; i < d->n; i++)
		verdicts_add(&table, d->of[i].verdict);
	verdicts_end(&table);
	const uint32_t n = table.n;
	verdicts_again(&table);
	uint32_t pairs = d->n;
	for (uint32_t i = 0; i < d->n; i++)
		pairs += d->of[i].settled;
	verdicts_put_number(b, pairs);
	for (uint32_t i = 0; i < d->n; i++) {
		uint32_t verdict = verdicts_add(&table, d->of[i].verdict);
		put_pair(b, d->of[i].recipient, verdict);
		if (d->of[i].settled)
			put_pair(b, d->of[i].recipient, verdict);
	}
	assert(table.n == n);
}

struct spool_delivered *payload_get_delivery(uint64_t id, const void *data, size_t len,
					     uint32_t *generation)
{
	if (len < 4)
		return NULL;
	*generation = (uint32_t)get_le(data, 4);
	return payload_get_delivery_1(id, (const uint8_t *)data + 4, len - 4);
}

/* Takes a reference of its own on the verdict. */
static void take_pair(struct spool_delivered *d, uint32_t recipient, struct verdict *v)
{
	bool again =
		d->n > 0 && d->of[d->n - 1].recipient == recipient && d->of[d->n - 1].verdict == v;
	if (again) {
		d->of[d->n - 1].settled = true;
		return;
	}
	d->of[d->n].recipient = recipient;
	d->of[d->n++].verdict = verdict_ref(v);
}

struct spool_delivered *payload_get_delivery_1(uint64_t id, const void *data, size_t len)
{
	struct cursor c = {.at = data, .left = len};
	uint32_t n;
	struct verdict **table = verdicts_get(&c, &n);
	uint64_t pairs = table ? cursor_number(&c, 4) : 0;
	struct spool_delivered *d = NULL;
	bool ok = table && !c.bad && pairs * 8 == c.left;
	if (ok) {
		d = mem_zalloc(sizeof *d + pairs * sizeof d->of[0]);
		d->id = id;
	}
	for (uint64_t i = 0; ok && i < pairs; i++) {
		uint32_t recipient = (uint32_t)cursor_number(&c, 4);
		uint32_t verdict = (uint32_t)cursor_number(&c, 4);
		ok = verdict < n;
		if (ok)
			take_pair(d, recipient, table[verdict]);
	}
	verdicts_free(table, n);
	if (!ok && d) {
		delivered_free(d);
		d = NULL;
	}
	return d;
}

void delivered_free(struct spool_delivered *d)
{
	for (uint32_t i = 0; i < d->n; i++)
		verdict_unref(d->of[i].verdict);
	free(d);
}

void delivered_apply(const struct spool_delivered *d, struct envelope *e)
{
	for (uint32_t i = 0; i < d->n; i++) {
		if (d->of[i].recipient >= e->nrcpt)
			continue;
		struct recipient *r = &e->rcpt[d->of[i].recipient];
		verdict_unref(r->last);
		r->last = verdict_ref(d->of[i].verdict);
		/* One that was in doubt may be judged at once: that is the same attempt. */
		r->tries += i == 0 || d->of[i - 1].recipient != d->of[i].recipient;
		/* A failure is recorded when its report is stored; of a delivery that the sender
		 * wants to know of, the report may be missing. */
		enum verdict_class class = r->last->class;
		if (class == VERDICT_IN_DOUBT && r->doubts < RECIPIENT_DOUBTS_MAX)
			r->doubts++;
		r->done =
			class == VERDICT_FAILED ||
			(class == VERDICT_SENT && (d->of[i].settled || !envelope_wants_word(e, r)));
	}
}
