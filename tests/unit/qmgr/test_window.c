/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "qmgr/sched/window.h"

#include <math.h>

enum {
	CONSTANT = FEEDBACK_CONSTANT,
	BY_N = FEEDBACK_CONCURRENCY,
	BY_SQRT = FEEDBACK_SQRT_CONCURRENCY
};

static struct conf_transport settings(int initial, int limit, int cohorts, int form, double value)
{
	struct conf_transport t = {.initial_destination_concurrency = initial,
				   .destination_concurrency_limit = limit,
				   .destination_concurrency_failed_cohort_limit = cohorts};
	t.destination_concurrency_positive_feedback.form = (unsigned)form;
	t.destination_concurrency_positive_feedback.value = value;
	t.destination_concurrency_negative_feedback = t.destination_concurrency_positive_feedback;
	return t;
}

static struct window fresh(const struct conf_transport *t)
{
	struct window w;
	window_init(&w, t);
	return w;
}

/* A small generator, so that a failure can be seen again. */
static uint64_t seed;

static double chance(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(seed >> 11) / 9007199254740992.0;
}

static int below(int n)
{
	return (int)(chance() * n);
}

/* The pseudocode of the document, line by line, with ">=" for the cohorts. */
struct pseudo {
	int concurrency;
	double success, failure, fail_cohorts;
};

static double g_or_f(const struct conf_feedback *of, int n)
{
	if (of->form == FEEDBACK_CONCURRENCY)
		return of->value / n;
	return of->form == FEEDBACK_SQRT_CONCURRENCY ? of->value / sqrt(n) : of->value;
}

static void after_success(struct pseudo *p, const struct conf_transport *t, int busy_refcount)
{
	p->fail_cohorts = 0;
	if (!(p->concurrency < busy_refcount + (int)t->initial_destination_concurrency))
		return;
	p->success += g_or_f(&t->destination_concurrency_positive_feedback, p->concurrency);
	while (p->success >= 1) {
		p->concurrency += 1;
		p->failure = 0;
		p->success -= 1;
	}
	int limit = (int)t->destination_concurrency_limit;
	if (limit != 0 && p->concurrency > limit)
		p->concurrency = limit;
}

static void after_failure(struct pseudo *p, const struct conf_transport *t)
{
	double limit = (double)t->destination_concurrency_failed_cohort_limit;
	if (p->concurrency > 0) {
		p->fail_cohorts += 1.0 / p->concurrency;
		if (limit != 0 && p->fail_cohorts > limit - 1e-9)
			p->concurrency = 0;
	}
	if (p->concurrency > 0) {
		p->failure -= g_or_f(&t->destination_concurrency_negative_feedback, p->concurrency);
		while (p->failure < 0) {
			p->concurrency -= 1;
			p->failure += 1;
			p->success = 0;
		}
		if (p->concurrency < 1)
			p->concurrency = 1;
	}
}

static struct conf_transport random_settings(void)
{
	static const double values[] = {0, 0.1, 0.25, 0.5, 1};
	int limit = below(2) ? 0 : 1 + below(30);
	struct conf_transport t = settings(1 + below(limit ? limit : 20), limit, below(4), below(3),
					   values[below(5)]);
	t.destination_concurrency_negative_feedback.form = (unsigned)below(3);
	t.destination_concurrency_negative_feedback.value = values[below(5)];
	return t;
}

static void same(const struct window *w, const struct pseudo *p)
{
	assert_int_equal(w->concurrency, p->concurrency);
	assert_true(fabs(w->fail_cohorts - p->fail_cohorts) < 1e-9);
	if (p->concurrency == 0)
		return;
	assert_true(fabs(w->success - p->success) < 1e-9);
	assert_true(fabs(w->failure - p->failure) < 1e-9);
}

static void it_does_what_the_pseudocode_does_whatever_happens(void **state)
{
	(void)state;
	int deaths = 0, most = 0;
	for (seed = 1; seed < 4000; seed++) {
		uint64_t this_seed = seed;
		struct conf_transport t = random_settings();
		struct window w = fresh(&t);
		struct pseudo p = {.concurrency = (int)t.initial_destination_concurrency};
		double failing = chance();
		for (int i = 0; i < 300; i++) {
			if (chance() < failing) {
				bool alive = p.concurrency > 0;
				after_failure(&p, &t);
				bool died = window_on_failure(&w, &t);
				assert_int_equal(died, alive && p.concurrency == 0);
			} else if (p.concurrency > 0) {
				int busy = 1 + below(p.concurrency);
				after_success(&p, &t, busy);
				window_on_success(&w, &t, busy);
			}
			same(&w, &p);
			most = w.concurrency > most ? w.concurrency : most;
			if (window_dead(&w)) {
				deaths++;
				window_revive(&w, &t);
				p = (struct pseudo){.concurrency =
							    (int)t.initial_destination_concurrency};
			}
		}
		seed = this_seed;
	}
	assert_true(deaths > 100);
	assert_true(most > 30);
}

static void a_window_begins_at_the_initial_concurrency(void **state)
{
	(void)state;
	struct conf_transport t = settings(7, 20, 1, CONSTANT, 1);
	struct window w;
	window_init(&w, &t);
	assert_int_equal(w.concurrency, 7);
	assert_true(w.success == 0 && w.failure == 0 && w.fail_cohorts == 0);
	assert_false(window_dead(&w));
}

static void it_does_not_grow_beyond_the_limit(void **state)
{
	(void)state;
	struct conf_transport t = settings(5, 20, 1, CONSTANT, 1);
	struct window w = fresh(&t);
	for (int i = 0; i < 100; i++)
		window_on_success(&w, &t, w.concurrency);
	assert_int_equal(w.concurrency, 20);
}

static void without_a_limit_it_goes_on_growing(void **state)
{
	(void)state;
	struct conf_transport t = settings(5, 0, 1, CONSTANT, 1);
	struct window w = fresh(&t);
	for (int i = 0; i < 100; i++)
		window_on_success(&w, &t, w.concurrency);
	assert_int_equal(w.concurrency, 105);
}

static void it_does_not_grow_while_much_of_it_is_unused(void **state)
{
	(void)state;
	struct conf_transport t = settings(5, 0, 1, CONSTANT, 1);
	struct window w = fresh(&t);
	for (int i = 0; i < 100; i++)
		window_on_success(&w, &t, 2);
	assert_int_equal(w.concurrency, 7); /* busy + initial */
}

static void it_grows_at_the_end_of_a_cohort_and_shrinks_at_its_beginning(void **state)
{
	(void)state;
	struct conf_transport t = settings(4, 0, 0, BY_N, 1);
	struct window w = fresh(&t);
	for (int i = 0; i < 3; i++)
		window_on_success(&w, &t, 4);
	assert_int_equal(w.concurrency, 4);
	window_on_success(&w, &t, 4);
	assert_int_equal(w.concurrency, 5);

	window_on_failure(&w, &t); /* the first of five */
	assert_int_equal(w.concurrency, 4);
	for (int i = 0; i < 3; i++)
		window_on_failure(&w, &t);
	assert_int_equal(w.concurrency, 4);
	window_on_failure(&w, &t);
	assert_int_equal(w.concurrency, 3);
}

static void it_shrinks_to_one_and_not_below(void **state)
{
	(void)state;
	struct conf_transport t = settings(5, 0, 0, CONSTANT, 1);
	struct window w = fresh(&t);
	for (int i = 0; i < 20; i++)
		assert_false(window_on_failure(&w, &t));
	assert_int_equal(w.concurrency, 1);
}

static void five_failures_at_concurrency_five_are_one_cohort(void **state)
{
	(void)state;
	struct conf_transport t = settings(5, 20, 1, CONSTANT, 0);
	struct window w = fresh(&t);
	for (int i = 0; i < 4; i++)
		assert_false(window_on_failure(&w, &t));
	assert_int_equal(w.concurrency, 5);
	assert_true(window_on_failure(&w, &t));
	assert_true(window_dead(&w));
}

static void every_concurrency_is_one_cohort_of_its_own_size(void **state)
{
	(void)state;
	for (int n = 1; n <= 200; n++) {
		struct conf_transport t = settings(n, 0, 2, CONSTANT, 0);
		struct window w = fresh(&t);
		int failures = 0;
		while (!window_dead(&w)) {
			window_on_failure(&w, &t);
			failures++;
		}
		assert_int_equal(failures, 2 * n);
	}
}

static void a_success_breaks_a_row_of_failed_cohorts(void **state)
{
	(void)state;
	struct conf_transport t = settings(5, 5, 1, CONSTANT, 0);
	struct window w = fresh(&t);
	for (int i = 0; i < 100; i++) {
		if (i % 5 == 4)
			window_on_success(&w, &t, 5);
		else
			window_on_failure(&w, &t);
	}
	assert_false(window_dead(&w));
}

static void a_limit_of_no_cohorts_means_never_dead(void **state)
{
	(void)state;
	struct conf_transport t = settings(1, 5, 0, CONSTANT, 1);
	struct window w = fresh(&t);
	for (int i = 0; i < 1000; i++)
		assert_false(window_on_failure(&w, &t));
	assert_int_equal(w.concurrency, 1);
}

static void what_comes_back_late_does_not_revive_the_dead(void **state)
{
	(void)state;
	struct conf_transport t = settings(1, 5, 1, CONSTANT, 1);
	struct window w = fresh(&t);
	assert_true(window_on_failure(&w, &t));
	window_on_success(&w, &t, 1);
	assert_false(window_on_failure(&w, &t));
	assert_true(window_dead(&w));
}

static void a_revived_window_is_as_at_first(void **state)
{
	(void)state;
	struct conf_transport t = settings(3, 5, 1, BY_N, 1);
	struct window w = fresh(&t);
	while (!window_on_failure(&w, &t))
		;
	window_revive(&w, &t);
	assert_int_equal(w.concurrency, 3);
	assert_true(w.success == 0 && w.failure == 0 && w.fail_cohorts == 0);
}

static void a_connection_cut_off_in_service_narrows_without_a_cohort(void **state)
{
	(void)state;
	struct conf_transport t = settings(5, 20, 1, CONSTANT, 1);
	struct window w = fresh(&t);
	for (int i = 0; i < 20; i++)
		window_narrow(&w, &t);
	assert_int_equal(w.concurrency, 1);
	assert_true(w.fail_cohorts == 0);
}

/* A server that answers 421 to more than five at once, and a client that picks what to deliver
 * before it connects: one delivery a connection, about a second each. The client of the document:
 * at most 20, at first 5. Returns the percentage deferred. */
struct delivery_under_way {
	double ends;
	bool accepted;
};

static int start_deliveries(struct delivery_under_way *of, int n, int window, int *left, double now)
{
	while (n<window && * left> 0) {
		int served = 0;
		for (int i = 0; i < n; i++)
			served += of[i].accepted;
		bool accepted = served < 5;
		of[n++] = (struct delivery_under_way){
			now + (accepted ? 1 + 0.05 * chance() : 0.001), accepted};
		--*left;
	}
	return n;
}

static double percentage_deferred(int form)
{
	enum { DELIVERIES = 20000 };
	struct conf_transport t = settings(5, 20, 0, form, 1);
	struct window w = fresh(&t);
	struct delivery_under_way of[32];
	int n = 0, left = DELIVERIES, deferred = 0;
	double now = 0;
	while (n > 0 || left > 0) {
		n = start_deliveries(of, n, w.concurrency, &left, now);
		int next = 0;
		for (int i = 1; i < n; i++)
			next = of[i].ends < of[next].ends ? i : next;
		now = of[next].ends;
		bool accepted = of[next].accepted;
		if (accepted)
			window_on_success(&w, &t, n);
		else
			window_on_failure(&w, &t);
		deferred += !accepted;
		of[next] = of[--n];
	}
	return 100.0 * deferred / DELIVERIES;
}

static void near(double got, double published)
{
	if (fabs(got - published) > 0.6)
		print_error("%.2f instead of %.2f\n", got, published);
	assert_true(fabs(got - published) <= 0.6);
}

static void a_server_with_a_limit_defers_as_much_as_was_published(void **state)
{
	(void)state;
	seed = 42;
	near(percentage_deferred(BY_N), 16.5);
	near(percentage_deferred(BY_SQRT), 24.8);
	near(percentage_deferred(CONSTANT), 49.7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_does_what_the_pseudocode_does_whatever_happens),
		cmocka_unit_test(a_window_begins_at_the_initial_concurrency),
		cmocka_unit_test(it_does_not_grow_beyond_the_limit),
		cmocka_unit_test(without_a_limit_it_goes_on_growing),
		cmocka_unit_test(it_does_not_grow_while_much_of_it_is_unused),
		cmocka_unit_test(it_grows_at_the_end_of_a_cohort_and_shrinks_at_its_beginning),
		cmocka_unit_test(it_shrinks_to_one_and_not_below),
		cmocka_unit_test(five_failures_at_concurrency_five_are_one_cohort),
		cmocka_unit_test(every_concurrency_is_one_cohort_of_its_own_size),
		cmocka_unit_test(a_success_breaks_a_row_of_failed_cohorts),
		cmocka_unit_test(a_limit_of_no_cohorts_means_never_dead),
		cmocka_unit_test(what_comes_back_late_does_not_revive_the_dead),
		cmocka_unit_test(a_revived_window_is_as_at_first),
		cmocka_unit_test(a_connection_cut_off_in_service_narrows_without_a_cohort),
		cmocka_unit_test(a_server_with_a_limit_defers_as_much_as_was_published),
	};
	return RUN(tests);
}
