/* site_hour.h - what became of a destination's mail in the last hour, in steps of half a minute.
 *
 *	a verdict, a connection that failed --> the step of now, of the site --> the page, and how fast it drains
 *
 * Of the sites that had something to count last, no more than SITE_HOURS: 2 KB each. One that is pushed out begins anew.
 *
 * OWNERSHIP  destdb has them all, in the order of their last use; a site refers to its own.
 * THREAD     qmgr.
 * ERRORS     None.
 */
#ifndef QMGR_DEST_SITE_HOUR_H
#define QMGR_DEST_SITE_HOUR_H

#include "base/list.h"
#include "base/verdict.h"

#include <stdint.h>

enum { SITE_HOURS = 256, SITE_HOUR_STEPS = 120, SITE_HOUR_STEP_MS = 30000 };

/* Recipients that were delivered, put off (with an attempt or, at a dead site, without), refused for good; and connections that came
 * to nothing. */
enum site_hour_count {
	SITE_HOUR_SENT,
	SITE_HOUR_DEFERRED,
	SITE_HOUR_BOUNCED,
	SITE_HOUR_UNREACHED,
	SITE_HOUR_COUNTS
};

struct site;

struct site_hours {
	struct list by_use; /* struct site_hour: the one unused for longest first */
	int n;
};

/* A copy: the steps since it was counted at all, the oldest first; the last one is not over yet. */
struct site_past {
	int64_t ago_ms; /* how long ago the last one began */
	int n;
	uint32_t step[SITE_HOUR_STEPS][SITE_HOUR_COUNTS];
};

void site_hours_init(struct site_hours *);
void site_hour_add(struct site *, enum site_hour_count);
void site_hour_verdict(struct site *, enum verdict_class);
void site_hour_free(struct site *); /* nothing, where it has none */

void site_hour_copy(const struct site *, struct site_past *);

int64_t site_hour_lately(const struct site *, enum site_hour_count, int64_t *over_ms);
/* In this step and the one before, and how long they are: half a minute to a whole one, or less at first. */

#endif
