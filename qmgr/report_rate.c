/* SPDX-License-Identifier: ISC */
#include "qmgr/report_rate.h"

#include "base/keyed_hash.h"
#include "base/name_key.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { TELL_MS = 60000 };

static struct report_window *slot_of(struct report_rate *r, const char *to)
{
	char *key = name_key(to);
	struct report_window *slot = &r->to[keyed_hash(key, strlen(key)) % REPORT_RATE_SLOTS];
	free(key);
	return slot;
}

/* How long until there is room; a window that has ended is begun anew. */
static int64_t wait_ms(struct report_window *w, const struct conf_rate *rate, int64_t now_ms)
{
	if (rate->events == 0)
		return 0;
	if (!w->begun || now_ms >= w->began_ms + rate->per_ms)
		*w = (struct report_window){.began_ms = now_ms, .begun = true};
	return w->n < rate->events ? 0 : w->began_ms + rate->per_ms - now_ms;
}

static int64_t longer_wait_ms(struct report_rate *r, const struct conf_queue *limits,
			      const char *to, int64_t now_ms)
{
	int64_t all_ms = wait_ms(&r->all, &limits->bounce_rate, now_ms);
	int64_t of_ms = wait_ms(slot_of(r, to), &limits->bounce_address_rate, now_ms);
	return all_ms > of_ms ? all_ms : of_ms;
}

int64_t report_rate_take(struct report_rate *r, const struct conf_queue *limits, const char *to,
			 int64_t now_ms)
{
	int64_t longer_ms = longer_wait_ms(r, limits, to, now_ms);
	assert(longer_ms >= 0);
	if (longer_ms == 0) {
		r->all.n++;
		slot_of(r, to)->n++;
	}
	return longer_ms;
}

bool report_rate_has_room(struct report_rate *r, const struct conf_queue *limits, const char *to,
			  int64_t now_ms)
{
	return longer_wait_ms(r, limits, to, now_ms) == 0;
}

bool report_rate_tell(struct report_rate *r, int64_t now_ms)
{
	if (r->said_ms && now_ms - r->said_ms < TELL_MS)
		return false;
	r->said_ms = now_ms;
	return true;
}
