/* page_watch.h - the live data of the status page, collected while somebody watches.
 *
 *	each second: counters, a glance at the scheduler --> "now"
 *	each ten seconds: counters --> a ring of an hour --> "hour"
 *
 * All that costs more is asked for by the page itself (http_look.h).
 *
 * OWNERSHIP  Embedded in struct http.
 * THREAD     http.
 * ERRORS     None.
 */
#ifndef CMD_HTTP_PAGE_WATCH_H
#define CMD_HTTP_PAGE_WATCH_H

#include "base/timer.h"
#include "cmd/control/glance.h"
#include "cmd/http/page_hour.h"

struct http;

struct page_watch {
	struct http *http;
	struct timer tick;
	struct glancer glancer;
	struct buf now, past;
	unsigned ticks;	 /* events that were sent */
	int64_t next_ms; /* steady clock: the next point is due */
	struct page_hour hour;
};

void page_watch_init(struct page_watch *, struct http *);
void page_watch_fini(struct page_watch *);
void page_watch_start(struct page_watch *);
void page_watch_stop(struct page_watch *);

#endif
