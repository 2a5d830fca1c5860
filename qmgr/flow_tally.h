/* flow_tally.h - what became of the mail of each flow: recipients, since the start or since the operator had it forgotten.
 *
 * Of the flows that had a verdict last: no more than FLOW_TALLIES.
 *
 * OWNERSHIP  Embedded in struct qmgr.
 * THREAD     qmgr.
 * ERRORS     None.
 */
#ifndef QMGR_FLOW_TALLY_H
#define QMGR_FLOW_TALLY_H

#include "base/keyed_hash.h"
#include "base/list.h"
#include "base/verdict.h"

#include <stdbool.h>
#include <stdint.h>

enum { FLOW_TALLIES = 1000, FLOW_VERDICTS = VERDICT_IN_DOUBT + 1 };

struct flow_tally {
	char *flow;
	int64_t n[FLOW_VERDICTS]; /* by enum verdict_class */
	int64_t last_ms;	  /* wall clock: of the latest */
	struct list by_time;
	UT_hash_handle hh;
};

struct flow_tallies {
	struct flow_tally *table;
	struct list by_time; /* the one unused for longest first */
	int n;
};

void flow_tallies_init(struct flow_tallies *);
void flow_tallies_fini(struct flow_tallies *);

void flow_tallies_count(struct flow_tallies *, const char *flow, enum verdict_class,
			int64_t now_ms);
struct flow_tally *flow_tallies_find(const struct flow_tallies *, const char *flow); /* or NULL */
void flow_tallies_forget(struct flow_tallies *, struct flow_tally *);

#endif
