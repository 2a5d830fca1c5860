/* pace.h - how many deliveries in a time: destination_rate.
 *
 * GCRA (base/gcra.h) without a burst: deliveries are evenly spaced, and a quiet time is not made up
 * for. Intervals shorter than PACE_GRAIN_MS may be made up for by so much, since timers and threads
 * wake up late.
 *
 * In a cluster the nodes share the rate. Then deliveries are reserved (base/sharing.h), in blocks: that which is
 * being used, and the next, wanted before this one ends. What was not used in time is lost, unless pace_keep() says that it is not.
 *
 * Numbers in, numbers out.
 *
 * THREAD     qmgr.
 */
#ifndef QMGR_SCHED_PACE_H
#define QMGR_SCHED_PACE_H

#include "base/gcra.h"

#include <stdbool.h>

enum {
	PACE_GRAIN_MS = 50,
	PACE_EARLY_MS = 50,   /* a block is wanted so long before the one in use ends */
	PACE_STALE_MS = 500,  /* it is lost when it has ended so long ago */
	PACE_ANSWER_MS = 100, /* who waits for a block looks again after so long */
};

/* So many deliveries, in even steps from then on. */
struct pace_block {
	int64_t n, from_us; /* steady clock */
};

struct pace {
	struct gcra deliveries; /* steady clock */
	bool wanted;		/* a block: the answer is to come */
	struct pace_block use, next;
	int64_t again_us; /* steady clock: it is of no use to want one sooner */
};

int64_t pace_due_ms(const struct pace *, const struct conf_rate *);
/* The next delivery may not begin before. */

void pace_count(struct pace *, const struct conf_rate *, int64_t now_ms); /* one begins */

void pace_uncount(struct pace *, const struct conf_rate *); /* one that was counted does not */

bool pace_used(const struct pace *, int64_t now_ms);
/* Does what was counted matter still? */

void pace_cap(struct pace *, const struct conf_rate *, int64_t now_ms);
/* The rate is another now: what was counted, or reserved by others, puts the next off by no more than one interval of this one. */

int64_t pace_reserved_ms(const struct pace *, const struct conf_rate *, int64_t now_ms);
/* The same of what is reserved. */

void pace_use(struct pace *, const struct conf_rate *); /* one of what is reserved begins */

void pace_keep(struct pace *, int64_t now_ms);
/* Turns that are reserved, and late, are not lost, and come in even steps from now on. */

void pace_give_back(struct pace *, const struct conf_rate *, int64_t now_ms);
/* One of what was reserved, and used, has not begun. */

int64_t pace_early_ms(const struct pace *, const struct conf_rate *, int64_t now_ms);
/* As pace_reserved_ms(), but intervals shorter than PACE_GRAIN_MS may be used by so much ahead. After pace_keep(). */

int64_t pace_wants(struct pace *, const struct conf_rate *, int64_t waiting, int64_t now_ms);
/* A block should be reserved now, for so many of the deliveries that wait: more than there are would be lost to all
 * nodes. Above 0: then it is wanted, until pace_granted(). */

void pace_granted(struct pace *, int64_t n, int64_t from_us, int64_t again_us); /* n may be 0 */

#endif
