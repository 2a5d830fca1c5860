/* inflow.h - whose message is taken up next, and who has as much of the active queue as it may have.
 *
 * A flow has a row, by a hash of its name: memory keeps no names, and one of thousands of flows may share a row with another. What waits
 * in the incoming queue waits in its row, oldest first. Rows have turns by start-time fair queuing, as backlogs have at a site.
 *
 * A row with a share of p percent gets another place among the active messages while it holds fewer than p / (100 - p) for each that is
 * free: alone it comes to p percent of all, and there is a place for who comes next.
 *
 * OWNERSHIP  Embedded in struct spool. stub->site is the number of its row, while it is incoming, and of the row that has its place,
 *            while it is active; 0: not known, none.
 * THREAD     spool; inflow_row_of() and inflow_behind(): any.
 * ERRORS     None; misuse asserts.
 * SEE        FINCH 2007, allowed_new_worker; docs/decisions/0129, 0135.
 */
#ifndef SPOOL_INFLOW_H
#define SPOOL_INFLOW_H

#include "spool/due.h"

#include <stdatomic.h>

enum { INFLOW_ROWS = 4096 };
static_assert((int)INFLOW_ROWS <= (int)SPOOL_SITE_MAX, "its number is kept in place of a site's");

struct inflow_row {
	struct due waiting;
	uint64_t start; /* virtual time */
	int64_t held;	/* places among the active messages */
	int64_t weight, share;
	uint32_t busy; /* its place in inflow->busy, from 1; 0: nothing waits */
};

struct inflow {
	struct inflow_row row[INFLOW_ROWS + 1]; /* [0]: of messages whose flow is not known */
	uint16_t busy[INFLOW_ROWS + 1];		/* rows where something waits */
	uint32_t nbusy, n;			/* rows, messages */
	int64_t held, nholding;			/* places of all, rows that have some */
	uint64_t time;				/* virtual */
	atomic_bool behind[INFLOW_ROWS + 1];	/* any thread */
};

void inflow_init(struct inflow *);
void inflow_fini(struct inflow *);

void inflow_shrink(struct inflow *); /* take no more memory than is needed */

uint16_t inflow_row_of(const char *flow); /* from 1 */

void inflow_know(struct inflow *, uint16_t row, const struct conf_flow *);
/* The share and weight that the configuration gives the flow that comes there now. */

void inflow_add(struct inflow *,
		struct stub *); /* it is incoming, in the row that its site names */
void inflow_remove(struct inflow *, struct stub *);

bool inflow_may(const struct inflow *, uint16_t row, int64_t nfree);
/* The row may have another place; nfree: how many there are. */

bool inflow_spare(const struct inflow *, int64_t nfree);
/* Mail that has been tried before may have one: it leaves the last tenth of the places to what is new. */

struct stub *inflow_first(const struct inflow *, int64_t nfree); /* NULL: none may be taken up */

void inflow_served(struct inflow *, uint16_t row);
/* The row has a turn: the first that waits there is taken up. */

void inflow_hold(struct inflow *, uint16_t row); /* it has a place more */
void inflow_let_go(struct inflow *, uint16_t row);

void inflow_tell(struct inflow *, int64_t nfree);
/* Says for other threads who waits and has its share already. */

bool inflow_behind(const struct inflow *, const char *flow);
/* Since then something of it has waited. Any thread; a hint. */

#endif
