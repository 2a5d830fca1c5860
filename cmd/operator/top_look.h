/* top_look.h - the data of one screen of `sluice top`: counters and destinations.
 *
 *	stats --all          NAME VALUE a line
 *	dest list --tabs     sites, the worst first
 *
 * OWNERSHIP  Embedded; top_look_fini(). Names and texts are the look's own.
 * THREAD     Main; it blocks.
 * ERRORS     The exit status of the client: the relay is out of reach.
 */
#ifndef CMD_OPERATOR_TOP_LOOK_H
#define CMD_OPERATOR_TOP_LOOK_H

#include "base/conf.h"

struct top_site {
	char *name, *state, *last;
	char *key;	   /* tells it from others of its name */
	double tried_in_s; /* 0: it is not out */
	int64_t window, busy, waiting, deferred, replies;
	double rate; /* replies a second since the look before; below 0: not known */
};

struct top_look {
	struct buf stats, dest;
	int64_t at_us; /* steady clock */
	struct top_site *site;
	int nsite;
};

void top_look_init(struct top_look *);
void top_look_fini(struct top_look *);

int top_look_take(struct top_look *, const struct conf *, const struct top_look *before);

double top_look_value(const struct top_look *,
		      const char *name); /* 0: there is none of that name */
double top_look_sum(const struct top_look *, const char *prefix);
/* Of all whose names begin so. */

double top_look_rate(const struct top_look *, const struct top_look *before, const char *prefix);
/* By how much a second the sum of those has grown. */

double top_look_mean(const struct top_look *, const struct top_look *before, const char *histogram,
		     const char *labels);
/* Of what was put into a histogram since; below 0: nothing. labels: as "{stage=\"in_queue\"}", or "". */

#endif
