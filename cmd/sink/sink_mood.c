/* SPDX-License-Identifier: ISC */
#include "cmd/sink/sink_mood.h"

#include "base/keyed_hash.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

struct sink_pair {
	UT_hash_handle hh;
	int64_t since_ms;
	char key[]; /* "from\nto" */
};

static char *key_of(const char *from, const char *to)
{
	char *key = mem_printf("%.*s\n%.*s", (int)strcspn(from, "\t"), from, (int)strcspn(to, "\t"),
			       to);
	for (char *c = key; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return key;
}

static void add_pair(struct sink_mood *m, const char *key, int64_t now_ms)
{
	size_t len = strlen(key);
	struct sink_pair *p = mem_zalloc(sizeof *p + len + 1);
	memcpy(p->key, key, len);
	p->since_ms = now_ms;
	HASH_ADD_STR(m->pairs, key, p);
	m->npairs++;
}

int64_t sink_mood_grey_ms(struct sink_mood *m, int64_t greylist_ms, const char *from,
			  const char *to, int64_t now_ms)
{
	struct sink_pair *p;
	char *key = key_of(from, to);
	int64_t left_ms = 0;
	HASH_FIND_STR(m->pairs, key, p);
	if (p)
		left_ms = p->since_ms + greylist_ms - now_ms;
	else if (m->npairs < SINK_PAIRS_MAX) {
		add_pair(m, key, now_ms);
		left_ms = greylist_ms;
	}
	free(key);
	return left_ms > 0 ? left_ms : 0;
}

bool sink_mood_beyond(struct sink_mood *m, const struct conf_rate *rate, int64_t now_us)
{
	if (rate->events == 0)
		return false;
	if (gcra_due_us(&m->rate, rate, gcra_burst_us(rate)) > now_us)
		return true;
	gcra_count(&m->rate, rate, now_us);
	return false;
}

void sink_mood_fini(struct sink_mood *m)
{
	hash_each (struct sink_pair, p, m->pairs) {
		HASH_DEL(m->pairs, p);
		free(p);
	}
	*m = (struct sink_mood){0};
}
