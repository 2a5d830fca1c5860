/* page_print.h - the data of the status page as JSON: one object on each line.
 *
 * Rows in, text out. What peers said is in it, as JSON strings; the page puts them in as text.
 *
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef CMD_HTTP_PAGE_PRINT_H
#define CMD_HTTP_PAGE_PRINT_H

#include "base/buf.h"
#include "cluster/cluster.h"
#include "cmd/http/page_hour.h"
#include "qmgr/snapshot.h"
#include "replica/node_view.h"
#include "smtpd/limiter.h"
#include "spool/spool.h"

#include <stdbool.h>

enum { PAGE_NODES = 20 };

struct page_now {
	struct page_point point;
	const char *hostname;
	int64_t uptime_ms;
	bool accepting;	      /* as the spool says */
	int64_t active_limit; /* messages; 0: none */
	const struct snapshot *snapshot;
	const struct conf *conf;	  /* whose filters are told */
	const struct limiter_top *logins; /* or NULL: nobody has sent */
	const struct cluster_view *nodes; /* as Redis says, or NULL */
	const struct node_view *epochs;	  /* as NATS says, or NULL */
};

void page_print_now(struct buf *, const struct page_now *);

void page_print_message(struct buf *, const struct spool_row *);
/* Its first recipient that is left, how many there are, and what one was told last. */

#endif
