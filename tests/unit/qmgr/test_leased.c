/* SPDX-License-Identifier: ISC */
/* Limits that the nodes of a cluster share, as qmgr sees them: it asks, goes on, and does as it is told. */
#include "tests/unit/qmgr/world.h"

#include "base/fact.h"
#include "base/sharing.h"

#include <stdlib.h>

static struct box needs;

static void to_cluster(void *context, struct note *note)
{
	(void)context;
	if (note->type == FACT_SEEN)
		fact_free(&(struct fact *){(struct fact *)note});
	else
		put(&needs, note);
}

static void begin_in_cluster(const char *transport)
{
	char text[600];
	snprintf(text, sizeof text,
		 "transport smtp { initial_destination_concurrency = 10\n"
		 "connection_limit = 100\n%s }",
		 transport);
	begin(text);
	q->db.edges.to_cluster = to_cluster;
}

static int finish_in_cluster(void **state)
{
	int rc = finish(state);
	while (needs.n > 0)
		free(take(&needs, 0));
	return rc;
}

/* What it says last, of what it says now. */
static void last_need(struct sharing_need *last)
{
	assert_true(needs.n > 0);
	while (needs.n > 0) {
		struct sharing_need *n = take(&needs, 0);
		assert_int_equal(n->note.type, SHARING_NEED);
		*last = *n;
		free(n);
	}
}

static void offer_of(uint64_t number, int64_t allowed, int64_t fair, int64_t others, bool scarce)
{
	struct sharing_leased *l = sharing_leased_new(q->db.hosts->key);
	l->scarce = scarce;
	l->number = number;
	l->allowed = allowed;
	l->fair = fair;
	l->others = others;
	post(&l->note);
	settle();
}

static void offer(uint64_t number, int64_t allowed, int64_t fair, int64_t others)
{
	offer_of(number, allowed, fair, others, false);
}

static void send_some(int n)
{
	for (int i = 1; i <= n; i++)
		send_mail((uint64_t)i, "rcpt@dest.test");
	answer("dest.test", "10 mx.test 192.0.2.1");
}

static void a_connection_needs_a_lease(void **state)
{
	(void)state;
	begin_in_cluster("host_connection_limit = 6");
	send_some(4);
	assert_int_equal(opened.n, 0);
	struct sharing_need n;
	last_need(&n);
	assert_int_equal(n.limit, 6);
	assert_int_equal(n.want, 4);
	assert_int_equal(n.hold, 0);
	offer(1, 3, 3, 3);
	assert_int_equal(opened.n, 3);
}

static void without_a_limit_nothing_is_asked(void **state)
{
	(void)state;
	begin_in_cluster("host_connection_limit = 0");
	send_some(4);
	assert_int_equal(opened.n, 4);
	assert_int_equal(needs.n, 0);
}

static void what_is_too_many_ends_and_goes_back(void **state)
{
	(void)state;
	begin_in_cluster("host_connection_limit = 4");
	send_some(4);
	offer(1, 4, 4, 0);
	assert_int_equal(opened.n, 4);
	for (int i = 0; i < 3; i++)
		ready(open_at(i), 1);
	last_need(&(struct sharing_need){0});
	offer(2, 4, 2, 0);
	int told_to = 0;
	for (int i = 0; i < 4; i++)
		told_to += was_told_to_end(open_at(i));
	assert_int_equal(told_to, 2);
	for (int i = 3; i >= 0; i--)
		if (was_told_to_end(open_at(i))) {
			struct connection_open *o = open_at(i);
			for (int d = given.n - 1; d >= 0; d--)
				if (given_at(d)->connection == o->connection)
					done(given_at(d), VERDICT_SENT);
			close_orderly(o);
		}
	struct sharing_need n;
	last_need(&n);
	assert_int_equal(n.hold, 2);
	assert_int_equal(n.heard, 2);
}

static void begin_with_an_idle_one(void)
{
	begin_in_cluster("host_connection_limit = 4");
	send_some(1);
	offer(1, 1, 1, 0);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
}

static void what_nobody_waits_for_goes_back(void **state)
{
	(void)state;
	begin_with_an_idle_one();
	last_need(&(struct sharing_need){0});
	close_orderly(open_at(0));
	struct sharing_need n;
	last_need(&n);
	assert_int_equal(n.hold, 0);
	assert_int_equal(n.want, 0);
}

static void none_is_kept_idle_where_there_is_not_one_for_each(void **state)
{
	(void)state;
	begin_in_cluster("host_connection_limit = 4");
	send_some(3);
	offer_of(1, 1, 1, 3, true);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	assert_false(was_told_to_end(open_at(0))); /* the next takes its place */
	done(given_at(0), VERDICT_SENT);
	done(given_at(0), VERDICT_SENT);
	assert_true(was_told_to_end(open_at(0)));
}

static void an_idle_one_ends_when_others_come_to_want_it(void **state)
{
	(void)state;
	begin_with_an_idle_one();
	assert_false(was_told_to_end(open_at(0)));
	offer_of(1, 1, 1, 3, true);
	assert_true(was_told_to_end(open_at(0)));
}

static void what_all_have_counts_as_learnt(void **state)
{
	(void)state;
	begin_in_cluster("host_connection_limit = 10");
	send_some(5);
	offer(1, 5, 5, 3);
	assert_int_equal(opened.n, 5);
	ready(open_at(0), 1);
	ready(open_at(1), 1);
	lose(open_at(4), "too many");
	assert_int_equal(q->db.hosts->limit.n, 5); /* two of ours, three of others */
}

static struct sharing_want *next_want(void)
{
	assert_int_equal(needs.n, 1);
	assert_int_equal(needs.note[0]->type, SHARING_WANT);
	return take(&needs, 0);
}

static void grant(struct sharing_want *w, int64_t n, int64_t from_ms, int64_t again_ms)
{
	w->n = n;
	w->from_us = from_ms * 1000;
	w->again_us = again_ms * 1000;
	post(&w->note);
	settle();
}

static void deliveries_are_reserved(void **state)
{
	(void)state;
	begin_in_cluster("host_connection_limit = 0\ndestination_rate = \"10/s\"");
	send_some(6);
	assert_int_equal(opened.n, 0);
	struct sharing_want *w = next_want();
	assert_int_equal(w->n, 6);
	assert_int_equal(w->rate.events, 10);
	grant(w, 2, clock_ms + 20, 0);
	assert_int_equal(given.n, 0);
	pass_time(20);
	ready(open_at(0), 1);
	while (opened.n > 1)
		ready(open_at(opened.n - 1), 1), take(&opened, opened.n - 1);
	assert_int_equal(given.n, 1);
	pass_time(100);
	assert_int_equal(given.n, 2);
	w = next_want(); /* before the block ends */
	grant(w, 0, clock_ms + 500, clock_ms + 400);
	pass_time(300);
	assert_int_equal(given.n, 2);
	assert_int_equal(needs.n, 0);
	pass_time(101);
	grant(next_want(), 1, clock_ms, 0);
	pass_time(1);
	assert_int_equal(given.n, 3);
}

static void a_site_whose_rate_is_shared_is_forgotten(void **state)
{
	(void)state;
	begin_in_cluster("host_connection_limit = 0\ndestination_rate = \"10/s\"");
	send_some(1);
	assert_true(site_paused(site_named("mx.test")));
	cancel(1);
	grant(next_want(), 0, clock_ms, clock_ms + 1000);
	for (int i = 0; i < 200; i++)
		pass_time(60000);
	assert_null(q->db.sites);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_connection_needs_a_lease, finish_in_cluster),
		cmocka_unit_test_teardown(without_a_limit_nothing_is_asked, finish_in_cluster),
		cmocka_unit_test_teardown(what_is_too_many_ends_and_goes_back, finish_in_cluster),
		cmocka_unit_test_teardown(what_nobody_waits_for_goes_back, finish_in_cluster),
		cmocka_unit_test_teardown(none_is_kept_idle_where_there_is_not_one_for_each,
					  finish_in_cluster),
		cmocka_unit_test_teardown(an_idle_one_ends_when_others_come_to_want_it,
					  finish_in_cluster),
		cmocka_unit_test_teardown(what_all_have_counts_as_learnt, finish_in_cluster),
		cmocka_unit_test_teardown(deliveries_are_reserved, finish_in_cluster),
		cmocka_unit_test_teardown(a_site_whose_rate_is_shared_is_forgotten,
					  finish_in_cluster),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
