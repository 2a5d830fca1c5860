/* sts_look.h - one look-up for a domain: its record, and its policy if that is new or grows old.
 *
 *	record --> same id, policy fresh -------------------------------> looked
 *	       --> none, several, faulty, unknown -----------------------> looked
 *	       --> another id --> addresses --> a place --> fetch --> parse --> looked
 *
 * A fetch has its place for STS_FETCH_SLOW_MS: hosts that do not answer, which anybody can have any number of, would keep policies
 * from being known, and mail would go past them. Slow ones have a bound of their own, beyond which the longest ends.
 *
 * OWNERSHIP  In struct sts_domain. sts_look_answered() takes the answer.
 * THREAD     sts.
 * ERRORS     As the domain's outcome and why; an older policy stays.
 */
#ifndef STS_STS_LOOK_H
#define STS_STS_LOOK_H

#include "base/conf.h"
#include "base/https.h"
#include "base/resolve.h"
#include "sts/sts.h"
#include "sts/sts_table.h"

enum {
	STS_FETCHES_MAX = 20, /* at once, but for slow ones: */
	STS_FETCH_SLOW_MS = 1000,
	STS_FETCHES_SLOW_MAX = 200,
};

/* The thread. */
struct sts {
	struct loop *loop;
	struct conf *conf;
	struct sts_edges edges;
	struct https *https; /* NULL at the end: what comes now is freed */
	struct sts_table table;
	struct list queue; /* struct sts_domain, QUEUED */
	int fetching;	   /* but for: */
	int nslow;	   /* fetches that take longer, in: */
	struct list slow;  /* struct sts_domain: the longest first */
	bool changed;	   /* since it was saved */
	struct timer save, tick;
};

void sts_look_begin(struct sts_domain *);
bool sts_look_due(const struct sts_domain *);
/* Is its policy in the last quarter of its life? */

void sts_look_answered(struct resolve *);
void sts_look_drop(struct sts_domain *); /* nobody hears of it */

void sts_looked(struct sts_domain *);
/* Of sts.c: called at the end of each look. */

#endif
