/* SPDX-License-Identifier: ISC */
#include "cmd/http/http_look.h"

#include "base/clock.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FRESH_MIN_MS = 1000, FRESH_MAX_MS = 60000, SHARE = 100 };

static void look_free(struct http_look *k)
{
	assert(list_empty(&k->waiting));
	list_remove(&k->link);
	if (k->own)
		k->free_own(k->own);
	assert(k->state != LOOK_ASKING || k->http->heavy > 0);
	if (k->state == LOOK_ASKING)
		k->http->heavy--;
	buf_fini(&k->out);
	free(k->key);
	magic_clear(&k->asker);
	free(k);
}

static struct http_look *find_look(struct http *h, const char *key)
{
	list_each_entry (struct http_look, k, link, &h->looks)
		if (strcmp(k->key, key) == 0)
			return k;
	return NULL;
}

/* Of those kept for nobody in particular, the one that was wanted longest ago goes. */
static bool make_room(struct http *h)
{
	struct http_look *oldest = NULL;
	int n = 0;
	list_each_entry (struct http_look, k, link, &h->looks) {
		n++;
		if (k->state == LOOK_READY)
			oldest = k;
	}
	if (n >= LOOKS_MAX && oldest)
		look_free(oldest);
	return n < LOOKS_MAX || oldest;
}

static struct http_look *look_new(struct http *h, const char *key)
{
	struct http_look *k = mem_zalloc(sizeof *k);
	k->asker.magic = ASKER_MAGIC;
	k->http = h;
	k->key = mem_strdup(key);
	list_init(&k->waiting);
	list_init(&k->link);
	return k;
}

static void hand_over(struct http_ask *a, const struct http_look *k)
{
	buf_append(&a->out, buf_data(&k->out), buf_len(&k->out));
	a->type = k->type;
	a->age_s = (clock_steady_ms() - k->made_ms) / 1000;
	http_ask_done(a, k->status);
}

static void begin_look(struct http_look *k, const struct look_kind *kind, void *own)
{
	assert(k->state != LOOK_ASKING && !k->own);
	buf_clear(&k->out);
	k->own = own;
	k->free_own = kind->free_own;
	k->state = LOOK_ASKING;
	k->http->heavy++;
	k->asked_ms = clock_steady_ms();
	k->type = "application/json";
	kind->begin(k);
}

static void wait_for(struct http_look *k, struct http_ask *a)
{
	assert(list_empty(&a->in_look));
	http_ask_wait(a);
	list_append(&k->waiting, &a->in_look);
}

void http_look_want(struct http_ask *a, const char *key, const struct look_kind *kind, void *own)
{
	struct http *h = a->http;
	struct http_look *k = find_look(h, key);
	bool fresh = k && k->state == LOOK_READY && clock_steady_ms() < k->next_ms;
	bool makes = !k || (k->state == LOOK_READY && !fresh);
	if (makes && (h->heavy >= ASKS_HEAVY_MAX || (!k && !make_room(h)))) {
		kind->free_own(own);
		http_ask_refuse(a, MHD_HTTP_SERVICE_UNAVAILABLE, "too many such questions at once");
		return;
	}
	if (!k)
		k = look_new(h, key);
	list_remove(&k->link);
	list_prepend(&h->looks, &k->link);
	if (fresh)
		hand_over(a, k);
	else
		wait_for(k, a);
	if (makes)
		begin_look(k, kind, own);
	else
		kind->free_own(own);
}

void http_look_expect(struct http_look *k, void (*answer)(struct asker *, struct note *))
{
	assert(k->state == LOOK_ASKING && !k->in_flight);
	k->asker.answer = answer;
	k->in_flight = true;
}

void http_look_post(struct http_look *k, struct loop *to, struct note *note,
		    void (*answer)(struct asker *, struct note *))
{
	http_look_expect(k, answer);
	loop_post(to, note);
}

bool http_look_back(struct http_look *k)
{
	assert(k->in_flight);
	k->in_flight = false;
	if (k->http->daemon.library)
		return true;
	look_free(k);
	return false;
}

void http_look_done(struct http_look *k, unsigned status)
{
	struct list *first;
	int64_t pause_ms;
	assert(k->state == LOOK_ASKING && !k->in_flight && k->http->heavy > 0);
	k->made_ms = clock_steady_ms();
	pause_ms = (k->made_ms - k->asked_ms) * SHARE;
	if (pause_ms < FRESH_MIN_MS)
		pause_ms = FRESH_MIN_MS;
	k->next_ms = k->made_ms + (pause_ms < FRESH_MAX_MS ? pause_ms : FRESH_MAX_MS);
	k->status = status;
	k->state = LOOK_READY;
	assert(k->http->heavy > 0);
	k->http->heavy--;
	k->free_own(k->own);
	k->own = NULL;
	while ((first = list_first(&k->waiting))) {
		struct http_ask *a = list_entry(first, struct http_ask, in_look);
		list_remove(first);
		hand_over(a, k);
	}
	if (buf_len(&k->out) > LOOK_KEPT_MAX)
		look_free(k);
}

void http_look_fail(struct http_look *k, unsigned status, const char *why)
{
	buf_clear(&k->out);
	buf_printf(&k->out, "%s\n", why);
	k->type = "text/plain; charset=utf-8";
	http_look_done(k, status);
}

void http_looks_free(struct http *h)
{
	list_each (link, tmp, &h->looks)
		look_free(list_entry(link, struct http_look, link));
}
