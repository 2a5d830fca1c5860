/* SPDX-License-Identifier: ISC */
#include "base/envelope.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct envelope *envelope_new(void)
{
	return mem_zalloc(sizeof(struct envelope));
}

static void free_pieces(struct envelope *e)
{
	recipient_index_forget(&e->index);
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		free(e->rcpt[i].address);
		free(e->rcpt[i].orcpt);
	}
	free(e->rcpt);
	free(e->sender);
	free(e->flow);
	free(e->user);
	free(e->client);
	free(e->envid);
}

void envelope_free(struct envelope **ep)
{
	struct envelope *e = mem_take(ep);
	if (!e)
		return;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		verdict_unref(e->rcpt[i].last);
	for (uint32_t i = 0; i < e->nhistory; i++)
		verdict_unref(e->history[i].verdict);
	free(e->history);
	assert(!e->packed || !e->index.slot);
	if (!e->packed)
		free_pieces(e);
	free(e);
}

static size_t text_size(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

static size_t packed_size(const struct envelope *e)
{
	size_t size = sizeof *e + e->nrcpt * sizeof *e->rcpt + text_size(e->sender) +
		      text_size(e->flow) + text_size(e->user) + text_size(e->client) +
		      text_size(e->envid);
	for (uint32_t i = 0; i < e->nrcpt; i++)
		size += text_size(e->rcpt[i].address) + text_size(e->rcpt[i].orcpt);
	return size;
}

/* Copy it to where the next text goes, and have it point there. */
static void pack_text(char **text, char **to)
{
	size_t size = text_size(*text);
	if (size > 0)
		*text = memcpy(*to, *text, size);
	*to += size;
}

struct envelope *envelope_pack(struct envelope *from)
{
	assert(!from->packed && from->nhistory == 0);
	recipient_index_forget(&from->index);
	size_t size = packed_size(from);
	struct envelope *e = mem_alloc(size);
	*e = *from;
	e->packed = true;
	e->rcpt = (struct recipient *)(e + 1);
	char *to = (char *)(e->rcpt + e->nrcpt);
	if (e->nrcpt > 0)
		memcpy(e->rcpt, from->rcpt, e->nrcpt * sizeof *e->rcpt);
	pack_text(&e->sender, &to);
	pack_text(&e->flow, &to);
	pack_text(&e->user, &to);
	pack_text(&e->client, &to);
	pack_text(&e->envid, &to);
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		assert(!e->rcpt[i].last);
		pack_text(&e->rcpt[i].address, &to);
		pack_text(&e->rcpt[i].orcpt, &to);
	}
	assert(to == (char *)e + size);
	free_pieces(from);
	free(from);
	return e;
}

struct recipient *envelope_add(struct envelope *e, const char *address)
{
	assert(!e->packed);
	/* Grow at the powers of two: most messages have one recipient. */
	if ((e->nrcpt & (e->nrcpt - 1)) == 0)
		e->rcpt = mem_realloc(e->rcpt, (e->nrcpt ? e->nrcpt * 2 : 1) * sizeof *e->rcpt);
	struct recipient *r = &e->rcpt[e->nrcpt++];
	*r = (struct recipient){.address = mem_strdup(address)};
	return r;
}

struct recipient *envelope_find(struct envelope *e, const char *address)
{
	assert(!e->packed);
	uint32_t at = recipient_index_find(&e->index, e->rcpt, e->nrcpt, address);
	return at == RECIPIENT_INDEX_NONE ? NULL : &e->rcpt[at];
}

bool envelope_has(const struct envelope *e, const char *address)
{
	for (uint32_t i = 0; i < e->nrcpt; i++)
		if (strcasecmp(e->rcpt[i].address, address) == 0)
			return true;
	return false;
}

void envelope_remove(struct envelope *e, const bool *gone)
{
	uint32_t n = 0;
	assert(!e->packed);
	recipient_index_forget(&e->index);
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		if (gone[i]) {
			free(e->rcpt[i].address);
			free(e->rcpt[i].orcpt);
			verdict_unref(e->rcpt[i].last);
		} else {
			e->rcpt[n++] = e->rcpt[i];
		}
	}
	e->nrcpt = n;
}

void envelope_add_history(struct envelope *e, const struct history *h)
{
	assert(e->nhistory <= ENVELOPE_HISTORY_MAX);
	if (e->nhistory == ENVELOPE_HISTORY_MAX) {
		struct history *oldest = &e->history[ENVELOPE_HISTORY_FIRST];
		verdict_unref(oldest->verdict);
		e->nhistory--;
		memmove(oldest, oldest + 1,
			(e->nhistory - ENVELOPE_HISTORY_FIRST) * sizeof *oldest);
	}
	e->history = mem_realloc(e->history, (e->nhistory + 1) * sizeof *e->history);
	assert(h->verdict && e->nhistory < ENVELOPE_HISTORY_MAX);
	e->history[e->nhistory] = *h;
	verdict_ref(h->verdict);
	e->nhistory++;
}

static bool same_verdict(const struct verdict *a, const struct verdict *b)
{
	return a == b || (a->when_ms == b->when_ms && a->class == b->class && a->code == b->code &&
			  strcmp(a->text, b->text) == 0 && strcmp(a->host, b->host) == 0);
}

static bool is_remembered(const struct envelope *e, const struct verdict *v)
{
	for (uint32_t i = e->nhistory; i > 0; i--)
		if (same_verdict(e->history[i - 1].verdict, v))
			return true;
	return false;
}

void envelope_remember(struct envelope *e)
{
	const struct verdict *before = NULL;
	int added = 0;
	for (uint32_t i = 0; i < e->nrcpt && added < ENVELOPE_HISTORY_ROUND; i++) {
		struct verdict *v = e->rcpt[i].last;
		if (!v || v == before || is_remembered(e, v))
			continue;
		before = v;
		struct history h = {.round = e->rounds, .recipient = i, .verdict = v};
		for (uint32_t k = i; k < e->nrcpt; k++)
			h.nrcpt += e->rcpt[k].last == v;
		envelope_add_history(e, &h);
		added++;
	}
}

bool envelope_flow_good(const char *name)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strlen(name);
	return len > 0 && len <= ENVELOPE_FLOW_MAX && strspn(name, letters) == len;
}

const char *envelope_flow(const struct envelope *e)
{
	if (e->flow)
		return e->flow;
	const char *at = strrchr(e->sender, '@');
	if (!e->sender[0])
		return "<>";
	return at ? at + 1 : e->sender;
}

int64_t envelope_began_ms(const struct envelope *e)
{
	return e->not_before_ms > e->arrived_ms ? e->not_before_ms : e->arrived_ms;
}

bool envelope_is_scheduled(const struct envelope *e)
{
	return e->not_before_ms > 0 && e->due_ms == e->not_before_ms;
}

void envelope_let_go(struct envelope *e, int64_t now_ms)
{
	assert(envelope_is_scheduled(e));
	if (e->by && e->not_before_ms > now_ms)
		e->by_ms -= e->not_before_ms - now_ms;
	e->not_before_ms = now_ms;
}

void envelope_came_from(struct envelope *e, const char *user, const char *client)
{
	assert(!e->packed);
	free(e->user);
	free(e->client);
	e->user = user ? mem_strdup(user) : NULL;
	e->client = client ? mem_strdup(client) : NULL;
}

bool envelope_wants_word(const struct envelope *e, const struct recipient *r)
{
	bool by = e->sender[0] && !(r->notify & NOTIFY_NEVER) &&
		  (e->by & (ENVELOPE_BY_NOTIFY | ENVELOPE_BY_TRACE));
	return by || (r->notify & NOTIFY_SUCCESS);
}

uint32_t envelope_open(const struct envelope *e)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < e->nrcpt; i++)
		n += !e->rcpt[i].done;
	return n;
}

const struct verdict *envelope_latest_verdict(const struct envelope *e)
{
	const struct verdict *latest = NULL;
	for (uint32_t i = 0; i < e->nrcpt; i++) {
		const struct verdict *v = e->rcpt[i].done ? NULL : e->rcpt[i].last;
		if (v && (!latest || v->when_ms > latest->when_ms))
			latest = v;
	}
	return latest;
}
