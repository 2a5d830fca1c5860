/* gcra.h - a limit on events in a time: the generic cell rate algorithm.
 *
 * Each event that counts moves the time at which the next one would come in even steps by the same
 * interval. One that comes earlier than that by no more than the tolerance conforms: with gcra_burst_us()
 * as many at once as the rate says, and then evenly; with none, evenly from the first.
 *
 * Numbers in, numbers out. A rate of no events is no limit.
 *
 * THREAD     Any.
 * SEE        ITU-T I.371, annex A.
 */
#ifndef BASE_GCRA_H
#define BASE_GCRA_H

#include "base/conf.h"

struct gcra {
	int64_t next_us; /* when the next event would come in even steps; 0: any time */
};

int64_t gcra_interval_us(const struct conf_rate *); /* between two; not without a limit */
int64_t gcra_burst_us(const struct conf_rate *);    /* the tolerance for all of them at once */

int64_t gcra_due_us(const struct gcra *, const struct conf_rate *, int64_t tolerance_us);
/* The next event conforms from then on. */

void gcra_count(struct gcra *, const struct conf_rate *, int64_t now_us); /* one has come */

struct conf_rate gcra_part(const struct conf_rate *, int64_t parts);
/* One of so many equal parts, of one event at least; not without a limit. */

int64_t gcra_room(const struct gcra *, const struct conf_rate *, int64_t now_us);
/* So many conform at once, with gcra_burst_us(); not without a limit. */

#endif
