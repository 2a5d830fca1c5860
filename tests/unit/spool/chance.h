/* chance.h - numbers that look random and are the same again for the same seed (splitmix64).
 *
 * THREAD     One a chance.
 */
#ifndef TESTS_UNIT_SPOOL_CHANCE_H
#define TESTS_UNIT_SPOOL_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

struct chance {
	uint64_t state;
};

static inline uint64_t chance_next(struct chance *c)
{
	uint64_t z = c->state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* From 0 to below n. */
static inline uint32_t chance_below(struct chance *c, uint32_t n)
{
	return (uint32_t)((chance_next(c) >> 32) * n >> 32);
}

static inline bool chance_percent(struct chance *c, uint32_t percent)
{
	return chance_below(c, 100) < percent;
}

/* One of n kinds, each as often as its weight is of the sum of all. */
static inline int chance_draw(struct chance *c, const uint32_t weight[], int n)
{
	uint32_t all = 0;
	int i = 0;
	for (int k = 0; k < n; k++)
		all += weight[k];
	for (uint32_t at = chance_below(c, all); at >= weight[i]; i++)
		at -= weight[i];
	return i;
}

#endif
