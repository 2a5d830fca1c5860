/* queue_filter.h - which messages a command on the queue applies to.
 *
 *	--queue Q --from ADDR --to ADDR --domain D --site S --older T --reason TEXT
 *	--flow NAME --login NAME --client ADDRESS|NETWORK
 *
 * The same condition given twice means either, different ones mean all of them. ADDR and D may be
 * patterns (base/address_pattern.h). A login is one however it is written (users.h). What is asked of
 * recipients must be true of one that is still to be reached.
 *
 * OWNERSHIP  queue_filter_fini() frees the arrays; the values point into argv, or to copies.
 * THREAD     Any.
 * ERRORS     queue_filter_add(): false, and what is wrong in error, by the name of the option.
 */
#ifndef CMD_TEXT_QUEUE_FILTER_H
#define CMD_TEXT_QUEUE_FILTER_H

#include "spool/spool.h"

#include <stdbool.h>

enum queue_condition {
	QUEUE_BY_FROM,
	QUEUE_BY_TO,
	QUEUE_BY_DOMAIN,
	QUEUE_BY_SITE,
	QUEUE_BY_REASON,
	QUEUE_BY_FLOW,
	QUEUE_BY_LOGIN,
	QUEUE_BY_CLIENT,
	QUEUE_BY_VALUES, /* those above have lists of values */
	QUEUE_BY_QUEUE = QUEUE_BY_VALUES,
	QUEUE_BY_OLDER,
};

struct queue_values {
	int n;
	const char **of;
};

struct queue_sites;

struct queue_filter {
	struct queue_values values[QUEUE_BY_VALUES];
	int nown;
	char **own;	  /* copies, for some of the values */
	unsigned queues;  /* bits 1 << enum spool_queue; 0: any */
	int64_t older_ms; /* -1: any age */
	bool any;	  /* it holds a condition */
};

void queue_filter_init(struct queue_filter *);
void queue_filter_fini(struct queue_filter *);

bool queue_filter_add(struct queue_filter *, enum queue_condition, const char *value,
		      struct buf *error);

bool queue_filter_match(const struct queue_filter *, struct queue_sites *, const struct spool_row *,
			int64_t now_ms);
/* sites: what decides about QUEUE_BY_SITE; NULL where the filter has none. */

#endif
