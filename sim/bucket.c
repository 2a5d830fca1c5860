/* SPDX-License-Identifier: ISC */
#include "sim/bucket.h"

void bucket_init(struct bucket *b, const struct conf_rate *rate, int64_t room, bool at_once)
{
	double most = (double)(room > 0 ? room : rate->events);
	*b = (struct bucket){.rate = *rate, .room = most, .has = most, .at_once = at_once};
}

static void fill_bucket(struct bucket *b, int64_t now_us)
{
	int64_t per_us = b->rate.per_ms * 1000;
	if (!b->at_once)
		b->has += (double)(now_us - b->filled_us) * (double)b->rate.events / (double)per_us;
	else if (now_us / per_us > b->filled_us / per_us)
		b->has = b->room;
	b->has = b->has < b->room ? b->has : b->room;
	b->filled_us = now_us;
}

int64_t bucket_next_us(const struct bucket *b, int64_t now_us)
{
	int64_t per_us = b->rate.per_ms * 1000;
	if (b->at_once)
		return (now_us / per_us + 1) * per_us;
	return now_us + (int64_t)((1 - b->has) * (double)per_us / (double)b->rate.events) + 1;
}

bool bucket_take(struct bucket *b, int64_t now_us)
{
	if (b->rate.events == 0)
		return true;
	fill_bucket(b, now_us);
	bool has_one = b->has >= 1;
	b->has -= has_one;
	return has_one;
}
