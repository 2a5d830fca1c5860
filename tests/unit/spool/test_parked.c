/* SPDX-License-Identifier: ISC */
#include "harness.h"

enum { LATER_MS = 100000000, MANY = 100000, SLICE = 997 };

static void has(uint16_t site, uint32_t parked, uint32_t waiting)
{
	struct spool_unpark u = harness_unpark(&h, site, 0);
	assert_int_equal(u.parked, parked);
	assert_int_equal(u.waiting, waiting);
}

static void order(int op, uint64_t id)
{
	struct spool_command *c = harness_ask(&h, op, id, 0, 0);
	assert_int_equal(c->affected, 1);
	spool_command_free(&c);
}

static void park(struct envelope *e, uint16_t site, int64_t delay_ms)
{
	e->due_ms = clock_wall_ms() + delay_ms;
	e->rounds++;
	harness_park(&h, e, site);
}

/* Store them and put them off; the oldest is due last. */
static void park_new(uint64_t *id, int n, uint16_t site)
{
	harness_credit(&h, n);
	for (int i = 0; i < n; i++)
		id[i] = harness_store(&h, 1, 100);
	for (int i = 0; i < n; i++)
		park(harness_take(&h), site, LATER_MS - i * 1000);
	has(site, (uint32_t)n, (uint32_t)n);
}

static void comes(uint64_t id)
{
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id);
	assert_false(h.urgent);
	envelope_free(&e);
}

static void the_oldest_are_made_due_and_no_more_than_asked_for(void **state)
{
	(void)state;
	uint64_t id[7];
	park_new(id, 7, 1);
	struct spool_unpark u = harness_unpark(&h, 1, 2);
	assert_int_equal(u.parked, 5);
	assert_int_equal(u.waiting, 7); /* they are due, and not started yet */
	comes(id[0]);
	comes(id[1]);
	has(1, 5, 5);
	u = harness_unpark(&h, 1, 1);
	assert_int_equal(u.parked, 4);
	comes(id[2]);
	u = harness_unpark(&h, 1, UINT32_MAX);
	assert_int_equal(u.parked, 0);
	for (int i = 3; i < 7; i++)
		comes(id[i]);
	u = harness_unpark(&h, 1, 10);
	assert_int_equal(u.parked, 0);
	assert_int_equal(u.waiting, 0);
	assert_int_equal(h.narrival, 14);
}

static void one_site_is_served_and_no_other(void **state)
{
	(void)state;
	uint64_t one[3], two[3], last[2];
	park_new(one, 3, 1);
	park_new(two, 3, 2);
	park_new(last, 2, SPOOL_SITE_MAX);
	has(3, 0, 0);
	struct spool_unpark u = harness_unpark(&h, 2, 100);
	assert_int_equal(u.parked, 0);
	for (int i = 0; i < 3; i++)
		comes(two[i]);
	has(1, 3, 3);
	has(2, 0, 0);
	has(SPOOL_SITE_MAX - 1, 0, 0);
	has(SPOOL_SITE_MAX, 2, 2);
	u = harness_unpark(&h, SPOOL_SITE_MAX, 1);
	assert_int_equal(u.parked, 1);
	comes(last[0]);
	has(1, 3, 3);
	has(SPOOL_SITE_MAX, 1, 1);
	assert_int_equal(h.narrival, 12);
}

static void mail_of_a_site_that_does_not_wait_for_it_is_counted_and_left(void **state)
{
	(void)state;
	uint64_t id[2];
	park_new(id, 2, 5);
	harness_credit(&h, 1);
	harness_store(&h, 1, 100);
	struct envelope *e = harness_take(&h);
	e->due_ms = clock_wall_ms() + LATER_MS;
	e->rounds++;
	struct spool_release *r = mem_zalloc(sizeof *r);
	*r = (struct spool_release){
		.note.type = SPOOL_RELEASE, .id = e->id, .envelope = e, .site = 5};
	loop_post(spool_loop(h.spool), &r->note);
	has(5, 2, 3);
	struct spool_unpark u = harness_unpark(&h, 5, 10);
	assert_int_equal(u.parked, 0);
	comes(id[0]);
	comes(id[1]);
	has(5, 0, 1);
	assert_int_equal(h.narrival, 5);
}

static void a_parked_message_is_due_at_its_own_time_too(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	uint64_t id = harness_store(&h, 1, 100);
	struct envelope *e = harness_take(&h);
	harness_credit(&h,
		       -1); /* however slow the machine is, it can't come before we have looked */
	park(e, 1, 50);
	has(1, 1, 1);
	harness_credit(&h, 1);
	comes(id);
	has(1, 0, 0);
}

static void what_is_deleted_held_requeued_or_flushed_waits_no_longer(void **state)
{
	(void)state;
	uint64_t id[5];
	park_new(id, 5, 1);
	harness_credit(&h, -5);
	order(SPOOL_DELETE, id[0]);
	has(1, 4, 4);
	order(SPOOL_SUSPEND, id[1]);
	has(1, 3, 3);
	order(SPOOL_FLUSH, id[2]); /* there is no credit for it */
	has(1, 2, 3);
	order(SPOOL_REQUEUE, id[3]);
	has(1, 1, 2);
	harness_credit(&h, 2);
	for (int i = 0; i < 2; i++) {
		struct envelope *e = harness_take(&h);
		assert_true(h.urgent && (e->id == id[2] || e->id == id[3]));
		envelope_free(&e);
	}
	has(1, 1, 1);
	order(SPOOL_RESUME, id[1]);
	has(1, 1, 1);
	harness_unpark(&h, 1, 9);
	has(1, 0, 1); /* still without credit */
}

static void flushing_all_leaves_nothing_parked(void **state)
{
	(void)state;
	uint64_t id[4];
	park_new(id, 2, 1);
	park_new(id + 2, 2, 2);
	harness_credit(&h, -4);
	struct spool_command *c = harness_ask(&h, SPOOL_FLUSH, 0, 0, 0);
	assert_int_equal(c->affected, 4);
	spool_command_free(&c);
	has(1, 0, 2);
	has(2, 0, 2);
	harness_credit(&h, 4);
	for (int i = 0; i < 4; i++) {
		struct envelope *e = harness_take(&h);
		assert_true(h.urgent);
		envelope_free(&e);
	}
	has(1, 0, 0);
	has(2, 0, 0);
}

static void only_the_flushed_one_of_a_site_is_urgent(void **state)
{
	(void)state;
	uint64_t id[3];
	park_new(id, 3, 1);
	order(SPOOL_FLUSH, id[1]);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id[1]);
	assert_true(h.urgent);
	park(e, 1, LATER_MS);
	harness_unpark(&h, 1, 3);
	for (int i = 0; i < 3; i++)
		comes(id[i]);
}

static void what_the_operator_wants_of_a_message_at_work_comes_before_its_site(void **state)
{
	(void)state;
	harness_credit(&h, 2);
	uint64_t held = harness_store(&h, 1, 100), again = harness_store(&h, 1, 100);
	struct envelope *e = harness_take(&h), *f = harness_take(&h);
	order(SPOOL_SUSPEND, held);
	order(SPOOL_REQUEUE, again);
	park(e, 1, LATER_MS);
	park(f, 1, LATER_MS);
	has(1, 0, 0);
	f = harness_take(&h);
	assert_int_equal(f->id, again);
	assert_true(h.urgent);
	envelope_free(&f);
	has(1, 0, 0);
}

static void nobody_is_parked_after_a_start_and_an_order_then_is_answered(void **state)
{
	(void)state;
	uint64_t id[3];
	park_new(id, 3, 1);
	harness_crash(&h);
	harness_open(&h);
	struct spool_unpark u = harness_unpark(&h, 1, 10); /* it may not be recovered yet */
	assert_int_equal(u.parked, 0);
	assert_int_equal(u.waiting, 0);
	harness_recovered(&h, 3);
	has(1, 0, 0);
	assert_int_equal(h.narrival, 0);
	harness_credit(&h, 1);
	order(SPOOL_FLUSH, id[0]);
	struct envelope *e = harness_take(&h);
	park(e, 1, LATER_MS);
	has(1, 1, 1);
}

static void one_that_is_older_and_parked_later_is_found(void **state)
{
	(void)state;
	uint64_t id[3];
	harness_credit(&h, 1);
	uint64_t first = harness_store(&h, 1, 100);
	struct envelope *e = harness_take(&h);
	park_new(id, 3, 1);
	harness_unpark(&h, 1, 1);
	comes(id[0]);
	park(e, 1, LATER_MS);
	struct spool_unpark u = harness_unpark(&h, 1, 2);
	assert_int_equal(u.parked, 1);
	comes(first);
	comes(id[1]);
}

static void orders_that_come_together_are_answered_in_turn(void **state)
{
	(void)state;
	uint64_t id[6];
	park_new(id, 6, 1);
	for (uint32_t i = 0; i < 3; i++) {
		struct spool_unpark *u = mem_zalloc(sizeof *u);
		*u = (struct spool_unpark){.note.type = SPOOL_UNPARK, .site = 1, .most = 2};
		loop_post(spool_loop(h.spool), &u->note);
	}
	harness_wait(&h, &h.nunpark, 4);
	assert_int_equal(h.unpark.parked, 0);
	for (int i = 0; i < 6; i++)
		comes(id[i]);
}

/* Their times are in no order, so that the oldest stand anywhere in the heap of what is due. */
static void a_hundred_thousand_go_in_slices_oldest_first(void **state)
{
	(void)state;
	static uint64_t id[MANY];
	harness_credit(&h, MANY);
	for (int i = 0; i < MANY; i++)
		id[i] = harness_store(&h, 1, 10);
	for (int i = 0; i < MANY; i++)
		park(harness_take(&h), 7, LATER_MS + i * INT64_C(7919) % 100003 * 1000);
	has(7, MANY, MANY);
	h.narrival = h.taken = 0;
	for (int i = 0; i < MANY; i += SLICE) {
		const int n = MANY - i < SLICE ? MANY - i : SLICE;
		struct spool_unpark u = harness_unpark(&h, 7, SLICE);
		assert_int_equal(u.parked, MANY - i - n);
		for (int k = 0; k < n; k++) {
			struct envelope *e = harness_take(&h);
			assert_in_range(e->id, id[i], id[i + n - 1]);
			envelope_free(&e);
		}
	}
	has(7, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(the_oldest_are_made_due_and_no_more_than_asked_for),
		HARNESS_TEST(one_site_is_served_and_no_other),
		HARNESS_TEST(mail_of_a_site_that_does_not_wait_for_it_is_counted_and_left),
		HARNESS_TEST(a_parked_message_is_due_at_its_own_time_too),
		HARNESS_TEST(what_is_deleted_held_requeued_or_flushed_waits_no_longer),
		HARNESS_TEST(flushing_all_leaves_nothing_parked),
		HARNESS_TEST(only_the_flushed_one_of_a_site_is_urgent),
		HARNESS_TEST(what_the_operator_wants_of_a_message_at_work_comes_before_its_site),
		HARNESS_TEST(nobody_is_parked_after_a_start_and_an_order_then_is_answered),
		HARNESS_TEST(one_that_is_older_and_parked_later_is_found),
		HARNESS_TEST(orders_that_come_together_are_answered_in_turn),
		HARNESS_TEST(a_hundred_thousand_go_in_slices_oldest_first),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
