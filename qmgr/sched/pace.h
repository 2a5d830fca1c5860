/* pace.h - how many deliveries in a time: destination_rate.
 *
 * GCRA (base/gcra.h) without a burst: deliveries are evenly spaced, and a quiet time is not made up
 * for. Intervals shorter than PACE_GRAIN_MS may be made up for by so much, since timers and threads
 * wake up late.
 *
 * Numbers in, numbers out.
 *
 * THREAD     qmgr.
 */
#ifndef QMGR_SCHED_PACE_H
#define QMGR_SCHED_PACE_H

#include "base/gcra.h"

enum { PACE_GRAIN_MS = 50 };

struct pace {
	struct gcra deliveries; /* steady clock */
};

int64_t pace_due_ms(const struct pace *, const struct conf_rate *);
/* The next delivery may not begin before. */

void pace_count(struct pace *, const struct conf_rate *, int64_t now_ms); /* one begins */

#endif
