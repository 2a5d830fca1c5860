/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/window.h"

#include <assert.h>
#include <math.h>

void window_init(struct window *w, const struct conf_transport *t)
{
	*w = (struct window){.concurrency = (int)t->initial_destination_concurrency};
}

void window_revive(struct window *w, const struct conf_transport *t)
{
	window_init(w, t);
}

void window_keep_to_limit(struct window *w, const struct conf_transport *t)
{
	int64_t limit = t->destination_concurrency_limit;
	if (limit > 0 && w->concurrency > limit)
		w->concurrency = (int)limit;
}

static double feedback_of(const struct conf_feedback *f, int concurrency)
{
	assert(concurrency > 0);
	switch (f->form) {
	case FEEDBACK_CONCURRENCY:
		return f->value / concurrency;
	case FEEDBACK_SQRT_CONCURRENCY:
		return f->value / sqrt(concurrency);
	default:
		return f->value;
	}
}

void window_on_success(struct window *w, const struct conf_transport *t, int busy)
{
	if (window_dead(w))
		return; /* a straggler: it was under way when the site died */
	w->fail_cohorts = 0;

	/* Growing beyond what is in use would hide how far the site really goes, and negative
	 * feedback would have to eat through the surplus first. */
	if (w->concurrency >= busy + t->initial_destination_concurrency)
		return;

	w->success += feedback_of(&t->destination_concurrency_positive_feedback, w->concurrency);
	while (w->success >= 1) { /* hysteresis 1, at the end of a sequence */
		w->concurrency++;
		w->failure = 0;
		w->success -= 1;
	}
	window_keep_to_limit(w, t);
}

void window_narrow(struct window *w, const struct conf_transport *t)
{
	if (window_dead(w))
		return;
	/* DIFFERS: as the pseudocode, not as the program, which rounds by half a step and does not
	 * reproduce the published tables. */
	w->failure -= feedback_of(&t->destination_concurrency_negative_feedback, w->concurrency);
	while (w->failure < 0) { /* hysteresis 1, at the beginning of a sequence */
		w->concurrency--;
		w->failure += 1;
		w->success = 0;
	}
	if (w->concurrency < 1)
		w->concurrency = 1;
}

bool window_on_failure(struct window *w, const struct conf_transport *t)
{
	if (window_dead(w))
		return false;
	w->fail_cohorts += 1.0 / w->concurrency;

	/* DIFFERS: the pseudocode says `>`, the program `>=`; only the latter makes five failures
	 * at a concurrency of five one cohort, as the text on the old scheduler needs. A sum of
	 * fifths is not quite one, hence the margin. */
	double limit = (double)t->destination_concurrency_failed_cohort_limit;
	if (limit > 0 && w->fail_cohorts >= limit - 1e-9) {
		w->concurrency = 0;
		w->success = w->failure = 0;
		return true;
	}

	window_narrow(w, t);
	return false;
}
