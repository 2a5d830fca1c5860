/* SPDX-License-Identifier: ISC */
/* Mail that its sender wants sent later (RFC 4865). */
#include "harness.h"

enum { HOUR_MS = 3600000, SOON_MS = 1500 };

static uint64_t store_for(int64_t ahead_ms, bool held)
{
	struct spool_store *store = harness_new_store(&h, 1, 100);
	uint64_t id = store->id;
	store->envelope->not_before_ms = clock_wall_ms() + ahead_ms;
	store->envelope->hold_asked = ahead_ms / 1000;
	store->envelope->hold_for = true;
	store->envelope->held = held;
	loop_post(spool_loop(h.spool), &store->note);
	harness_wait(&h, &h.nstored, h.nstored + 1);
	return id;
}

/* Where it is, and its envelope. */
static struct envelope *shown(uint64_t id, enum spool_queue queue)
{
	struct spool_command *c = harness_ask(&h, SPOOL_SHOW, id, 0, 0);
	assert_int_equal(c->nrow, 1);
	assert_int_equal(c->row[0].queue, queue);
	struct envelope *e = c->row[0].envelope;
	c->row[0].envelope = NULL;
	spool_command_free(&c);
	return e;
}

static void assert_waits(uint64_t id)
{
	struct envelope *e = shown(id, SPOOL_DEFERRED);
	assert_true(envelope_is_scheduled(e));
	assert_int_equal(e->rounds, 0);
	assert_true(e->due_ms > clock_wall_ms() + HOUR_MS / 2);
	assert_int_equal(e->hold_asked, HOUR_MS / 1000);
	assert_true(e->hold_for);
	envelope_free(&e);
}

static struct spool_command *order(int op, uint64_t id, bool held_too)
{
	struct spool_command *c = spool_command_new(op, h.loop, NULL);
	c->id = id;
	c->held_too = held_too;
	harness_command(&h, c);
	return c;
}

static void assert_order(int op, uint64_t id, bool held_too, int64_t affected, int64_t scheduled)
{
	struct spool_command *c = order(op, id, held_too);
	assert_int_equal(c->affected, affected);
	assert_int_equal(c->unmoved[SPOOL_SCHEDULED], scheduled);
	spool_command_free(&c);
}

static void it_comes_at_its_time_and_not_before(void **state)
{
	(void)state;
	harness_credit(&h, 5);
	uint64_t id = store_for(SOON_MS, false);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id);
	assert_true(clock_wall_ms() >= e->not_before_ms);
	assert_int_equal(e->rounds, 0);
	envelope_free(&e);
}

static void a_time_that_has_passed_holds_nothing_up(void **state)
{
	(void)state;
	harness_credit(&h, 5);
	uint64_t id = store_for(-HOUR_MS, false);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id);
	assert_int_equal(e->due_ms, 0);
	envelope_free(&e);
}

static void others_go_past_it_and_it_takes_no_place(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	uint64_t id = store_for(HOUR_MS, false);
	uint64_t other = harness_store(&h, 1, 100);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, other);
	envelope_free(&e);
	assert_waits(id);
}

static void it_waits_on_after_a_crash(void **state)
{
	(void)state;
	uint64_t id = store_for(HOUR_MS, false);
	harness_crash(&h);
	harness_open(&h);
	harness_credit(&h, 5);
	harness_recovered(&h, 1);
	assert_waits(id);
	assert_order(SPOOL_FLUSH, 0, true, 0, 1);
	assert_waits(id);
}

static void a_flush_of_many_leaves_it_and_a_name_lets_it_go(void **state)
{
	(void)state;
	static const int op[] = {SPOOL_FLUSH, SPOOL_RESUME};
	harness_credit(&h, 5);
	for (int i = 0; i < 2; i++) {
		uint64_t id = store_for(HOUR_MS, false);
		assert_order(SPOOL_FLUSH, 0, false, 0, 1);
		assert_order(op[i], id, false, 0, 1);
		assert_waits(id);
		assert_order(op[i], id, true, 1, 0);
		struct envelope *e = harness_take(&h);
		assert_int_equal(e->id, id);
		assert_true(h.urgent);
		assert_true(e->not_before_ms <= clock_wall_ms());
		assert_true(e->not_before_ms > clock_wall_ms() - HOUR_MS / 2);
		assert_int_equal(e->hold_asked, HOUR_MS / 1000);
		harness_release(&h, id, NULL);
		envelope_free(&e);
	}
}

static void an_early_release_outlives_a_crash(void **state)
{
	(void)state;
	uint64_t id = store_for(HOUR_MS, false);
	assert_order(SPOOL_RESUME, id, true, 1, 0);
	harness_crash(&h);
	harness_open(&h);
	harness_credit(&h, 5);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id);
	envelope_free(&e);
}

static void hold_and_release_leave_it_as_it_was(void **state)
{
	(void)state;
	harness_credit(&h, 5);
	uint64_t id = store_for(HOUR_MS, false), filtered = store_for(HOUR_MS, true);
	assert_order(SPOOL_SUSPEND, id, false, 1, 0);
	struct envelope *e = shown(id, SPOOL_HOLD);
	envelope_free(&e);
	assert_order(SPOOL_RESUME, id, true, 1, 0);
	assert_waits(id);
	assert_order(SPOOL_RESUME, filtered, false, 1, 0);
	assert_waits(filtered);
	assert_order(SPOOL_REQUEUE, id, true, 1, 0);
	assert_waits(id);
}

static void it_can_be_returned_and_deleted_meanwhile(void **state)
{
	(void)state;
	harness_credit(&h, 5);
	uint64_t returned = store_for(HOUR_MS, false), deleted = store_for(HOUR_MS, false);
	assert_order(SPOOL_DELETE, deleted, false, 1, 0);
	assert_order(SPOOL_BOUNCE, returned, false, 1, 0);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, returned);
	assert_true(e->returned);
	harness_release(&h, returned, NULL);
	envelope_free(&e);
	harness_recovered(&h, 0);
}

static void one_of_another_node_waits_on_when_it_is_ours(void **state)
{
	(void)state;
	harness_credit(&h, 5);
	struct spool_store *store = harness_new_store(&h, 1, 100);
	uint64_t id = store->id;
	store->adopted = true;
	store->envelope->due_ms = store->envelope->not_before_ms = clock_wall_ms() + HOUR_MS;
	store->envelope->hold_asked = HOUR_MS / 1000;
	store->envelope->hold_for = true;
	loop_post(spool_loop(h.spool), &store->note);
	harness_wait(&h, &h.nstored, 1);
	struct note *ours = mem_zalloc(sizeof *ours);
	ours->type = SPOOL_ADOPTED;
	loop_post(spool_loop(h.spool), ours);
	assert_waits(id);
	assert_order(SPOOL_FLUSH, 0, false, 0, 1);
	assert_waits(id);
	assert_order(SPOOL_RESUME, id, true, 1, 0);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id);
	envelope_free(&e);
}

static void once_tried_it_is_deferred_like_any_other(void **state)
{
	(void)state;
	harness_credit(&h, 5);
	uint64_t id = store_for(1, false);
	struct envelope *e = harness_take(&h);
	e->rounds++;
	e->due_ms = clock_wall_ms() + HOUR_MS;
	harness_release(&h, id, e);
	assert_order(SPOOL_FLUSH, id, false, 1, 0);
	e = harness_take(&h);
	assert_int_equal(e->id, id);
	envelope_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(it_comes_at_its_time_and_not_before),
		HARNESS_TEST(a_time_that_has_passed_holds_nothing_up),
		HARNESS_TEST(others_go_past_it_and_it_takes_no_place),
		HARNESS_TEST(it_waits_on_after_a_crash),
		HARNESS_TEST(a_flush_of_many_leaves_it_and_a_name_lets_it_go),
		HARNESS_TEST(an_early_release_outlives_a_crash),
		HARNESS_TEST(hold_and_release_leave_it_as_it_was),
		HARNESS_TEST(it_can_be_returned_and_deleted_meanwhile),
		HARNESS_TEST(one_of_another_node_waits_on_when_it_is_ours),
		HARNESS_TEST(once_tried_it_is_deferred_like_any_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
