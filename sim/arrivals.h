/* arrivals.h - the messages of a scenario, all of them, in the order in which they come.
 *
 *	arrival sections --> distributions, or trace.c: a log of the relay --> one list, by time
 *
 * OWNERSHIP  Embedded; arrivals_fini() frees all. Domains may lie in the scenario.
 * THREAD     main.
 * ERRORS     Only a trace has any, as "FILE:LINE: what is wrong".
 */
#ifndef SIM_ARRIVALS_H
#define SIM_ARRIVALS_H

#include "base/conf_faults.h"
#include "sim/scenario.h"

struct arrival {
	int64_t at_us; /* since the start */
	uint64_t size;
	uint32_t nrcpt;
	int number;	     /* in the order of the file */
	const char **domain; /* of each recipient */
	const char *flow;    /* NULL: that of its sender */
	int64_t node;	     /* from 1; 0: any */
};

struct arrivals {
	int n;
	struct arrival *item;
	int nword;
	char **word; /* domains that are not in the scenario as they are */
};

bool arrivals_make(struct arrivals *, const struct scenario *, uint64_t seed, struct buf *errors);
struct arrival *arrivals_add(struct arrivals *, int64_t at_us, uint64_t size, uint32_t nrcpt);
/* Its domains are all NULL; valid until the next call. */

const char *arrivals_domain(struct arrivals *, const struct spread *, struct dice *,
			    uint32_t number);
/* One of the spread, for the recipient of this number in its message, from 1. */

const char *arrivals_keep(struct arrivals *, char *word); /* takes the word */

void arrivals_deal(const struct arrivals *, struct dice *, int nodes, struct arrivals to[]);
/* To one of the nodes each, by chance, or as its section says. Their domains stay the lender's; arrivals_undeal() frees the rest. */

void arrivals_undeal(struct arrivals dealt[], int nodes); /* NULL is allowed */

void arrivals_fini(struct arrivals *);

#endif
