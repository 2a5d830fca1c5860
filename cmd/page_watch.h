/* page_watch.h - what the status page shows, gathered while somebody listens.
 *
 *	each second: counters --> ring; a glance at the scheduler --> "now"
 *	seldom:      SPOOL_SHAPE --> "shape"
 *	             SPOOL_LIST --> the oldest messages -- QMGR_EXPLAIN --> "slow"
 *
 * The last two take the spool's time: each is asked again five seconds later at the earliest, and not
 * before a hundred times as long has passed as its answer took.
 *
 * OWNERSHIP  Embedded in struct http.
 * THREAD     http.
 * ERRORS     None.
 */
#ifndef CMD_PAGE_WATCH_H
#define CMD_PAGE_WATCH_H

#include "base/timer.h"
#include "cmd/asker.h"
#include "cmd/glance.h"
#include "cmd/page_print.h"

struct http;
struct page_watch;

/* What is asked for again and again. */
struct page_question {
	struct asker asker; /* first */
	struct page_watch *watch;
	bool in_flight;
	int64_t asked_ms, next_ms; /* steady clock */
	struct buf text;	   /* the last answer */
	unsigned number;	   /* of that */
};

struct page_watch {
	struct http *http;
	struct timer tick;
	struct glancer glancer;
	struct buf now, past;
	unsigned ticks;
	struct page_sample sample[PAGE_SECONDS];
	unsigned nsample; /* in all */
	struct page_question shape;
	struct page_ages ages[PAGE_SHAPES];
	unsigned nages; /* in all */
	struct page_question slow;
	struct spool_command *oldest; /* while they are being explained */
	int unexplained;
	struct buf why[PAGE_MESSAGES];
};

void page_watch_init(struct page_watch *, struct http *);
void page_watch_fini(struct page_watch *);
void page_watch_start(struct page_watch *);
void page_watch_stop(struct page_watch *);

#endif
