/* sweep_buckets.h - many random hosts that let so much through in a time, beside an oracle that knows how much.
 *
 *	seed --> sweep_buckets_write(): one site, one host with a bucket, more mail than it lets through
 *	             --> [ sim_run ]    how much was sent when the oracle had sent all, and how often the host refused
 *	             --> [ oracle ]     each message at the first moment at which the bucket has one, in the order of arrival
 *
 * By the second, the minute or the hour; bit by bit, or all at the end of each such time; with or without room for more.
 *
 * OWNERSHIP  sweep_buckets_run() to sweep_buckets_fini().
 * THREAD     main.
 * ERRORS     Faults of the scheduler are counted.
 */
#ifndef SIM_SWEEP_BUCKETS_H
#define SIM_SWEEP_BUCKETS_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct sweep_bucket {
	uint64_t seed;
	char *what; /* the host and its mail in a line */
	int64_t messages;
	int64_t in_time; /* of them: sent when the oracle had sent its last */
	int64_t refused;
	double last_s, oracle_s; /* when the last was sent */
	int64_t faults;
};

struct sweep_buckets {
	int n;
	struct sweep_bucket *of; /* by seed */
};

void sweep_buckets_run(struct sweep_buckets *, int n, uint64_t seed, bool pace);
/* With this seed and those that follow it. pace: the setting of the transport. */

void sweep_buckets_fini(struct sweep_buckets *);
int64_t sweep_buckets_faults(const struct sweep_buckets *);

bool sweep_bucket_slow(const struct sweep_bucket *);	/* less than nine tenths in time */
bool sweep_bucket_refused(const struct sweep_bucket *); /* a tenth of its messages, or more */

void sweep_buckets_report(struct sweep_buckets *, struct buf *to); /* sorts: the slowest first */
void sweep_buckets_json(const struct sweep_buckets *, struct buf *to);

void sweep_buckets_write(uint64_t seed, bool pace, struct buf *scenario, struct buf *what);
/* The text of a scenario, and a line about it. */

#endif
