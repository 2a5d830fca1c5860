/* flow_tally.h - what became of the mail of each flow: recipients, today, yesterday and in the last hour.
 *
 * The hour is FLOW_STEPS steps of FIGURES_SLOT_MS, the last of which has only begun. Of the flows that had a verdict last: no more than
 * FLOW_TALLIES.
 *
 * As text, to be kept over restarts, each is a line: when the latest verdict was, its figures, the step and what was counted in it and
 * in those before it, and its name. A clock that is put back takes along what it has counted, as in base/figures.h.
 *
 * OWNERSHIP  Embedded in struct qmgr.
 * THREAD     qmgr; flow_tallies_read() before it starts.
 * ERRORS     None; a line that makes no sense is left out.
 * SEE        docs/decisions/0151.
 */
#ifndef QMGR_FLOW_TALLY_H
#define QMGR_FLOW_TALLY_H

#include "base/buf.h"
#include "base/figures.h"
#include "base/keyed_hash.h"
#include "base/list.h"
#include "base/verdict.h"

#include <stdbool.h>
#include <stdint.h>

enum { FLOW_TALLIES = 1000, FLOW_STEPS = 12 };

enum flow_figure { FLOW_SENT, FLOW_DEFERRED, FLOW_REFUSED, FLOW_FIGURES };

struct flow_hour {
	uint32_t n[FLOW_STEPS][FLOW_FIGURES]; /* the latest first */
	uint32_t step;			      /* since 1970: that of the first */
};

struct flow_tally {
	char *flow;
	struct figures days; /* by enum flow_figure; in doubt counts as deferred */
	struct flow_hour hour;
	int64_t last_ms; /* wall clock: of the latest */
	struct list by_time;
	UT_hash_handle hh;
};

struct flow_tallies {
	struct flow_tally *table;
	struct flow_tally *latest; /* that was counted: most mail is of few flows. Or NULL */
	struct list by_time;	   /* the one unused for longest first */
	int n;
	bool changed; /* since it was saved: the caller's to clear */
};

void flow_tallies_init(struct flow_tallies *);
void flow_tallies_fini(struct flow_tallies *);

void flow_tallies_count(struct flow_tallies *, const char *flow, enum verdict_class,
			int64_t now_ms);
const struct flow_tally *flow_tallies_find(struct flow_tallies *, const char *flow, int64_t now_ms);
/* Its figures are those of now; or NULL. */

void flow_tallies_forget(struct flow_tallies *, const struct flow_tally *);

int64_t flow_hour_sum(const struct flow_hour *, enum flow_figure);

void flow_tallies_write(const struct flow_tallies *, struct buf *to);
void flow_tallies_read(struct flow_tallies *, const char *text);

#endif
