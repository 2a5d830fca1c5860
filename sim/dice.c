/* SPDX-License-Identifier: ISC */
#include "sim/dice.h"

#include <assert.h>
#include <math.h>

void dice_init(struct dice *d, uint64_t seed, const char *who)
{
	d->state = seed * UINT64_C(0x9e3779b97f4a7c15);
	for (; *who; who++)
		d->state = (d->state ^ (unsigned char)*who) * UINT64_C(0x100000001b3);
	dice_next(d);
}

/* A counter in large odd steps, its bits well mixed: any seed is good, zero too. */
uint64_t dice_next(struct dice *d)
{
	d->state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t x = d->state;
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}

double dice_part(struct dice *d)
{
	return (double)(dice_next(d) >> 11) / 9007199254740992.0;
}

int64_t dice_between(struct dice *d, int64_t low, int64_t high)
{
	assert(high >= low);
	return low + (int64_t)(dice_part(d) * (double)(high - low + 1));
}

double dice_log_between(struct dice *d, double low, double high)
{
	return low * pow(high / low, dice_part(d));
}

bool dice_happens(struct dice *d, double chance)
{
	return chance > 0 && dice_part(d) < chance;
}

double dice_gap(struct dice *d, double mean)
{
	return -log(1 - dice_part(d)) * mean;
}

int64_t dice_noisy(struct dice *d, int64_t value, double noise)
{
	return (int64_t)((double)value * (1 + noise * (2 * dice_part(d) - 1)));
}
