/* page_hour.h - what came and went in the last hour, for the chart of the status page.
 *
 *	every ten seconds: the counters --> a ring of an hour --> the page, which draws the differences
 *
 * The relay keeps it, whether somebody looks or not, so that who opens the page after the trouble sees it.
 *
 * OWNERSHIP  Embedded in struct page_watch; 21 KB.
 * THREAD     http.
 * ERRORS     None. A restart begins anew.
 */
#ifndef CMD_HTTP_PAGE_HOUR_H
#define CMD_HTTP_PAGE_HOUR_H

#include "base/buf.h"

#include <stdint.h>

enum { PAGE_HOUR_STEP_MS = 10000, PAGE_HOUR_POINTS = 361 /* 360 steps lie between them */ };

/* X(count): messages accepted, commands refused to clients, recipients delivered, attempts put off, recipients
 * that a host refused for good. All since the start. */
#define PAGE_COUNTS(X)                                                                             \
	X(received)                                                                                \
	X(rejected)                                                                                \
	X(sent)                                                                                    \
	X(deferred)                                                                                \
	X(bounced)

enum page_count {
#define X(name) PAGE_##name,
	PAGE_COUNTS(X)
#undef X
		PAGE_COUNT
};

/* The counters of the page, at one time. */
struct page_point {
	int64_t at_ms; /* wall clock */
	int64_t n[PAGE_COUNT];
};

struct page_hour {
	struct page_point point[PAGE_HOUR_POINTS]; /* a ring */
	unsigned taken;				   /* in all */
};

void page_point_take(struct page_point *, int64_t now_ms);
void page_hour_take(struct page_hour *, int64_t now_ms); /* due each PAGE_HOUR_STEP_MS */

void page_hour_print(struct buf *, const struct page_hour *);
/* One line: the names of the counts; and the points, the oldest first, each a time and its counts. */

#endif
