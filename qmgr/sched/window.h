/* window.h - how many connections one site may have: Postfix's concurrency feedback.
 *
 * Numbers in, numbers out: no clock, no I/O, no allocation.
 *
 * OWNERSHIP  Embedded in struct site.
 * THREAD     qmgr.
 * STATES     alive; dead once fail_cohorts reaches the limit, until window_revive().
 * ERRORS     None; misuse asserts.
 * SEE        POSTFIX SCHEDULER_README, "Pseudocode"; POSTFIX qmgr_queue.c.
 */
#ifndef QMGR_SCHED_WINDOW_H
#define QMGR_SCHED_WINDOW_H

#include "base/conf.h"

#include <stdbool.h>

struct window {
	int concurrency; /* connections allowed; 0 when dead */
	double success, failure, fail_cohorts;
};

void window_init(struct window *, const struct conf_transport *);
void window_revive(struct window *, const struct conf_transport *);
/* A dead site may be tried again: as at first. */

void window_keep_to_limit(struct window *, const struct conf_transport *);
/* The settings are others now. */

void window_on_success(struct window *, const struct conf_transport *, int busy);
/* Count one delivery that did not fail in connection or handshake, while `busy` connections of the
 * site were in use. */

bool window_on_failure(struct window *, const struct conf_transport *);
/* Count one failed connection or handshake. True when this one made the site dead. */

void window_narrow(struct window *, const struct conf_transport *);
/* The negative feedback alone, which never makes a site dead: a connection that had carried mail
 * was cut off. */

static inline bool window_dead(const struct window *w)
{
	return w->concurrency == 0;
}

#endif
