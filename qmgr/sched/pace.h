/* pace.h - how many deliveries in a time: destination_rate.
 *
 * GCRA: each delivery moves the time at which the next one is due by the same interval, so that they
 * are evenly spaced and a quiet time is not made up for. Intervals shorter than PACE_GRAIN_MS may be
 * made up for by so much, since timers and threads wake up late.
 *
 * Numbers in, numbers out.
 *
 * THREAD     qmgr.
 */
#ifndef QMGR_SCHED_PACE_H
#define QMGR_SCHED_PACE_H

#include "base/conf.h"

enum { PACE_GRAIN_MS = 50 };

struct pace {
	int64_t next_us; /* steady clock: when the next delivery is due; 0: any time */
};

int64_t pace_due_ms(const struct pace *, const struct conf_rate *);
/* The next delivery may not begin before. */

void pace_count(struct pace *, const struct conf_rate *, int64_t now_ms); /* one begins */

#endif
