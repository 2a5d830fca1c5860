/* stats_print.h - what `sluice stats`, /api/stats and /metrics say: counters, and the scheduler's busiest
 * sites.
 *
 * THREAD     Any.
 */
#ifndef CMD_TEXT_STATS_PRINT_H
#define CMD_TEXT_STATS_PRINT_H

#include "base/metrics_print.h"
#include "qmgr/snapshot.h"
#include "smtpd/limiter.h"

#include <stdbool.h>

#define STATS_CONDITION "condition " /* begins the line of one: base/condition.h */

struct stats_view {
	bool accepting; /* as the spool says; conditions are looked at besides */
	bool brief;	/* see struct metrics_print */
	int64_t uptime_ms;
	const struct snapshot *snapshot;
	const struct limiter_top *top; /* NULL: nobody has sent */
};

void stats_print(struct buf *to, enum metrics_form, const struct stats_view *);
/* METRICS_JSON: one object, one line. */

#endif
