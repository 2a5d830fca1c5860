/* dice.h - random numbers from a seed.
 *
 * Each part of a simulation has dice of its own, so that a change in one leaves the others alone.
 *
 * THREAD     One.
 */
#ifndef SIM_DICE_H
#define SIM_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
	uint64_t state;
};

void dice_init(struct dice *, uint64_t seed, const char *who);
uint64_t dice_next(struct dice *);
double dice_part(struct dice *); /* 0 <= result < 1 */
int64_t dice_between(struct dice *, int64_t low, int64_t high);
double dice_log_between(struct dice *, double low, double high);
/* Each order of magnitude as often. */
bool dice_happens(struct dice *, double chance);
double dice_gap(struct dice *, double mean); /* between two events of a Poisson process */
int64_t dice_noisy(struct dice *, int64_t value, double noise);
/* value, longer or shorter by up to that part. */

#endif
