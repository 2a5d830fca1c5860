/* SPDX-License-Identifier: ISC */
#include "base/sharing.h"

#include <assert.h>
#include <string.h>

/* Of this size and kind, with the key behind it. */
static void *new_note(size_t size, enum sharing_note type, const char *key)
{
	size_t len = strlen(key);
	struct note *n = mailbox_note(size + len + 1, (int)type);
	memcpy((char *)n + size, key, len);
	return n;
}

struct sharing_want *sharing_want_new(struct loop *reply_to, const char *key,
				      const struct conf_rate *rate, int64_t n)
{
	assert(n > 0 && rate->events > 0);
	struct sharing_want *w = new_note(offsetof(struct sharing_want, key), SHARING_WANT, key);
	w->reply_to = reply_to;
	w->rate = *rate;
	w->n = n;
	return w;
}

struct sharing_need *sharing_need_new(struct loop *reply_to, const char *key)
{
	struct sharing_need *n = new_note(offsetof(struct sharing_need, key), SHARING_NEED, key);
	n->reply_to = reply_to;
	return n;
}

struct sharing_leased *sharing_leased_new(const char *key)
{
	return new_note(offsetof(struct sharing_leased, key), SHARING_LEASED, key);
}

struct sharing_spent *sharing_spent_new(struct loop *reply_to, const char *key,
					const struct conf_rate *rate)
{
	struct sharing_spent *s = new_note(offsetof(struct sharing_spent, key), SHARING_SPENT, key);
	s->reply_to = reply_to;
	s->rate = *rate;
	return s;
}

struct sharing_total *sharing_total_new(const char *key)
{
	return new_note(offsetof(struct sharing_total, key), SHARING_TOTAL, key);
}
