/* SPDX-License-Identifier: ISC */
#include "harness.h"

static void list_goes_through_the_queue_page_by_page(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	for (int i = 0; i < 95; i++)
		harness_store(&h, 1, 100);
	harness_wait(&h, &h.nstored, 95);
	uint64_t after = 0;
	int n = 0, active = 0;
	for (;;) {
		struct spool_command *c = harness_ask(&h, SPOOL_LIST, 0, after, 10);
		if (c->nrow == 0) {
			spool_command_free(&c);
			break;
		}
		for (int i = 0; i < c->nrow; i++) {
			assert_true(c->row[i].envelope->id > after);
			after = c->row[i].envelope->id;
			active += c->row[i].queue == SPOOL_ACTIVE;
		}
		n += c->nrow;
		spool_command_free(&c);
	}
	assert_int_equal(n, 95);
	assert_int_equal(active, 10);
}

static void what_is_stored_as_held_waits_for_the_operator(void **state)
{
	(void)state;
	harness_credit(&h, 5);
	struct spool_store *store = harness_new_store(&h, 1, 100);
	uint64_t id = store->id;
	store->envelope->held = true;
	loop_post(spool_loop(h.spool), &store->note);
	harness_wait(&h, &h.nstored, 1);
	struct spool_command *c = harness_ask(&h, SPOOL_SHOW, id, 0, 0);
	assert_int_equal(c->nrow, 1);
	assert_int_equal(c->row[0].queue, SPOOL_HOLD);
	spool_command_free(&c);
	c = harness_ask(&h, SPOOL_RESUME, id, 0, 0);
	assert_int_equal(c->affected, 1);
	spool_command_free(&c);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id);
	assert_false(e->held);
	envelope_free(&e);
}

static void show_gives_envelope_verdicts_and_content(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	uint64_t id = harness_store(&h, 2, 777);
	struct envelope *e = harness_take(&h);
	envelope_free(&e);
	harness_delivered(&h, id, 1, VERDICT_SENT);
	struct spool_command *c = harness_ask(&h, SPOOL_SHOW, id, 0, 0);
	assert_int_equal(c->nrow, 1);
	assert_int_equal(c->row[0].queue, SPOOL_ACTIVE);
	assert_true(c->row[0].envelope->rcpt[1].done);
	assert_int_equal(c->row[0].envelope->rcpt[1].last->class, VERDICT_SENT);
	char bytes[800];
	assert_int_equal(content_read(c->row[0].content, 0, bytes, sizeof bytes), 777);
	spool_command_free(&c);
	c = harness_ask(&h, SPOOL_SHOW, id + 1, 0, 0);
	assert_int_equal(c->nrow, 0);
	spool_command_free(&c);
}

static void defer(int64_t delay_ms)
{
	struct envelope *e = harness_take(&h);
	e->due_ms = clock_wall_ms() + delay_ms;
	e->rounds++;
	harness_release(&h, e->id, e);
}

static void flush_makes_deferred_messages_due(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	for (int i = 0; i < 5; i++)
		harness_store(&h, 1, 100);
	for (int i = 0; i < 5; i++)
		defer(100000000);
	harness_wait(&h, &h.nstored, 5);
	struct spool_command *c = harness_ask(&h, SPOOL_FLUSH, h.stored[3], 0, 0);
	assert_int_equal(c->affected, 1);
	spool_command_free(&c);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, h.stored[3]);
	envelope_free(&e);
	c = harness_ask(&h, SPOOL_FLUSH, 0, 0, 0);
	assert_int_equal(c->affected, 4);
	spool_command_free(&c);
	harness_wait(&h, &h.narrival, 10);
}

static void order(int op, uint64_t id, int64_t affected)
{
	struct spool_command *c = harness_ask(&h, op, id, 0, 0);
	assert_int_equal(c->affected, affected);
	spool_command_free(&c);
}

/* The next one that comes is this, and is put off again. */
static void comes(uint64_t id, bool urgent, int64_t delay_ms)
{
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id);
	assert_int_equal(h.urgent, urgent);
	e->due_ms = clock_wall_ms() + delay_ms;
	e->rounds++;
	harness_release(&h, id, e);
}

static void what_is_flushed_is_urgent_once_and_nothing_else_is(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	uint64_t one = harness_store(&h, 1, 100), other = harness_store(&h, 1, 100);
	comes(one, false, 100000000);
	comes(other, false, 100000000);
	order(SPOOL_FLUSH, one, 1);
	comes(one, true, 1);
	comes(one, false, 100000000); /* by its own time */
	order(SPOOL_FLUSH, 0, 2);
	struct envelope *first = harness_take(&h);
	assert_true(h.urgent);
	struct envelope *second = harness_take(&h);
	assert_true(h.urgent);
	assert_int_equal(first->id + second->id, one + other);
	envelope_free(&first);
	envelope_free(&second);
}

/* It has the only place. */
static void work_on_another(void)
{
	harness_store(&h, 1, 100);
	struct envelope *e = harness_take(&h);
	envelope_free(&e);
}

/* Of those that come next, which are put off again. */
static int urgent_among(int n)
{
	int urgent = 0;
	harness_credit(&h, n);
	for (int i = 0; i < n; i++) {
		struct envelope *e = harness_take(&h);
		e->due_ms = clock_wall_ms() + 100000000;
		e->rounds++;
		urgent += h.urgent;
		harness_release(&h, e->id, e);
	}
	return urgent;
}

static void what_was_flushed_before_a_stop_and_not_begun_is_due_after_it(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	comes(harness_store(&h, 1, 100), false, 100000000);
	uint64_t flushed = harness_store(&h, 1, 100);
	comes(flushed, false, 100000000);
	work_on_another();
	order(SPOOL_FLUSH, flushed, 1);
	harness_close(&h);
	harness_open(&h);
	harness_recovered(&h, 3);
	assert_int_equal(urgent_among(2), 1);
	harness_close(&h);
	harness_open(&h);
	harness_recovered(&h, 3);
	order(SPOOL_FLUSH, flushed, 1); /* which was not due by what an earlier stop has left */
	harness_credit(&h, 10);
	comes(flushed, true, 100000000);
	harness_recovered(&h, 3);
	assert_int_equal(h.narrival, 1);
}

static void assert_none_due(void)
{
	struct spool_command *c = harness_ask(&h, SPOOL_LIST, 0, 0, 10);
	for (int i = 0; i < c->nrow; i++)
		assert_true(c->row[i].envelope->due_ms > clock_wall_ms());
	spool_command_free(&c);
}

static void what_was_flushed_before_a_stop_is_due_after_a_crash_behind_it_too(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	for (int i = 0; i < 2; i++)
		comes(harness_store(&h, 1, 100), false, 100000000);
	work_on_another();
	order(SPOOL_FLUSH, 0, 2);
	harness_close(&h);
	harness_open(&h);
	harness_recovered(&h, 3);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 3);
	assert_int_equal(urgent_among(3), 2);
	harness_recovered(&h, 3);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 3);
	assert_none_due();
}

static void what_is_requeued_or_resumed_is_urgent(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	uint64_t id = harness_store(&h, 1, 100);
	comes(id, false, 100000000);
	order(SPOOL_REQUEUE, id, 1);
	comes(id, true, 100000000);
	order(SPOOL_SUSPEND, id, 1);
	order(SPOOL_RESUME, id, 1);
	comes(id, true, 1);
	comes(id, false, 100000000);
}

static void what_is_held_after_a_flush_is_not_urgent_when_it_is_returned(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	uint64_t id = harness_store(&h, 1, 100);
	comes(id, false, 100000000);
	harness_credit(&h, -1); /* what is due has to wait */
	order(SPOOL_FLUSH, id, 1);
	order(SPOOL_SUSPEND, id, 1);
	order(SPOOL_BOUNCE, id, 1);
	harness_credit(&h, 1);
	comes(id, false, 100000000);
}

static void what_is_requeued_while_worked_on_is_urgent_afterwards(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	uint64_t id = harness_store(&h, 1, 100);
	struct envelope *e = harness_take(&h);
	order(SPOOL_REQUEUE, id, 1);
	assert_int_equal(h.ncancel, 1);
	e->due_ms = clock_wall_ms() + 100000000;
	e->rounds++;
	harness_release(&h, id, e);
	comes(id, true, 1);
	comes(id, false, 100000000);
}

static void a_time_that_no_clock_reaches_is_not_taken_for_another(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	uint64_t id = harness_store(&h, 1, 100);
	struct envelope *e = harness_take(&h);
	e->due_ms = INT64_MAX;
	e->rounds++;
	harness_release(&h, id, e);
	struct spool_command *c = harness_ask(&h, SPOOL_LIST, 0, 0, 10);
	assert_int_equal(c->row[0].queue, SPOOL_DEFERRED);
	assert_true(c->row[0].envelope->due_ms > clock_wall_ms() + INT64_C(50000000000000));
	spool_command_free(&c);
}

static void delete_takes_what_waits_and_cancels_what_is_being_worked_on(void **state)
{
	(void)state;
	harness_credit(&h, 2);
	for (int i = 0; i < 4; i++)
		harness_store(&h, 1, 100);
	harness_wait(&h, &h.nstored, 4);
	struct spool_command *c = harness_ask(&h, SPOOL_DELETE, 0, 0, 0);
	assert_int_equal(c->affected, 4);
	assert_int_equal(c->cancelled, 2);
	spool_command_free(&c);
	assert_int_equal(h.ncancel, 2);
	assert_int_equal(harness_count(&h), 2);
	/* One comes back with an envelope all the same, as it may have been on its way. */
	defer(1000);
	struct envelope *e = harness_take(&h);
	harness_release(&h, e->id, NULL);
	envelope_free(&e);
	harness_recovered(&h, 0);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 0);
}

static void what_is_deleted_while_worked_on_is_not_found_by_a_later_order(void **state)
{
	(void)state;
	static const int orders[] = {SPOOL_SUSPEND, SPOOL_REQUEUE, SPOOL_BOUNCE, SPOOL_RESUME,
				     SPOOL_FLUSH};
	harness_credit(&h, 1);
	uint64_t id = harness_store(&h, 1, 100);
	struct envelope *e = harness_take(&h);
	order(SPOOL_DELETE, id, 1);
	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
		struct spool_command *c = harness_ask(&h, orders[i], id, 0, 0);
		assert_int_equal(c->affected, 0);
		assert_int_equal(c->unmoved[SPOOL_MISSING], 1);
		spool_command_free(&c);
		order(orders[i], 0, 0);
	}
	assert_int_equal(h.ncancel, 1);
	order(SPOOL_DELETE, id, 1); /* the same once more */
	e->due_ms = clock_wall_ms() + 1000;
	e->rounds++;
	harness_release(&h, id, e);
	harness_recovered(&h, 0);
}

/* What comes back next, after an attempt in which these orders came; NULL: it is on hold. */
static struct envelope *ordered_while_tried(const int *orders, size_t n)
{
	uint64_t id = harness_store(&h, 1, 100);
	struct envelope *e = harness_take(&h);
	for (size_t i = 0; i < n; i++)
		order(orders[i], id, 1);
	e->due_ms = clock_wall_ms() + 1000;
	e->rounds++;
	harness_release(&h, id, e);
	struct spool_command *c = harness_ask(&h, SPOOL_LIST, id, id - 1, 1);
	bool held = c->nrow == 1 && c->row[0].queue == SPOOL_HOLD;
	spool_command_free(&c);
	return held ? NULL : harness_take(&h);
}

#define ORDERED(...)                                                                               \
	ordered_while_tried((const int[]){__VA_ARGS__}, sizeof(int[]){__VA_ARGS__} / sizeof(int))

static void a_later_order_does_not_undo_a_bounce_of_what_is_worked_on(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	struct envelope *e = ORDERED(SPOOL_BOUNCE, SPOOL_REQUEUE);
	assert_non_null(e);
	assert_true(e->returned && !e->held);
	envelope_free(&e);
	e = ORDERED(SPOOL_BOUNCE, SPOOL_SUSPEND, SPOOL_REQUEUE);
	assert_non_null(e);
	assert_true(e->returned && !e->held);
	envelope_free(&e);
}

static void what_is_released_while_worked_on_is_not_held_after_it(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	struct envelope *e = ORDERED(SPOOL_SUSPEND, SPOOL_RESUME);
	assert_true(e && !e->held && h.urgent);
	envelope_free(&e);
	assert_null(ORDERED(SPOOL_SUSPEND, SPOOL_RESUME, SPOOL_SUSPEND));
	e = ORDERED(SPOOL_BOUNCE, SPOOL_SUSPEND, SPOOL_RESUME);
	assert_true(e && e->returned && !e->held);
	envelope_free(&e);
}

static void what_is_released_as_fresh_while_worked_on_begins_its_lifetime_anew(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	uint64_t id = harness_store(&h, 1, 100);
	struct envelope *e = harness_take(&h);
	e->arrived_ms -= 1000000;
	const int64_t arrived_ms = e->arrived_ms;
	order(SPOOL_SUSPEND, id, 1);
	struct spool_command *c = spool_command_new(SPOOL_FLUSH, h.loop, NULL);
	c->id = id;
	harness_command(&h, c);
	assert_int_equal(c->unmoved[SPOOL_AT_WORK], 1); /* nobody named what is held */
	spool_command_free(&c);
	c = spool_command_new(SPOOL_RESUME, h.loop, NULL);
	c->fresh = true;
	harness_command(&h, c);
	assert_int_equal(c->cancelled, 1);
	spool_command_free(&c);
	e->rounds++;
	harness_release(&h, id, e);
	e = harness_take(&h);
	assert_true(!e->held && e->arrived_ms > arrived_ms);
	envelope_free(&e);
}

static void what_is_held_after_that_is_returned_when_it_is_released(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	assert_null(ORDERED(SPOOL_BOUNCE, SPOOL_SUSPEND));
	order(SPOOL_RESUME, 0, 1);
	struct envelope *e = harness_take(&h);
	assert_true(e->returned && !e->held);
	envelope_free(&e);
}

static void a_bounce_counts_after_other_orders_and_a_deletion_after_it(void **state)
{
	(void)state;
	harness_credit(&h, 10);
	struct envelope *e = ORDERED(SPOOL_SUSPEND, SPOOL_REQUEUE, SPOOL_BOUNCE);
	assert_non_null(e);
	assert_true(e->returned && !e->held);
	uint64_t id = e->id;
	order(SPOOL_BOUNCE, id, 1);
	order(SPOOL_DELETE, id, 1);
	harness_release(&h, id, e);
	harness_recovered(&h, 0);
}

static void a_deleted_message_stays_deleted_after_a_crash(void **state)
{
	(void)state;
	harness_store(&h, 1, 100);
	uint64_t id = harness_store(&h, 1, 100);
	struct spool_command *c = harness_ask(&h, SPOOL_DELETE, id, 0, 0);
	assert_int_equal(c->affected, 1);
	spool_command_free(&c);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 1);
}

static void a_long_queue_is_deleted_in_steps_and_answered_once(void **state)
{
	(void)state;
	enum { MANY = 12000 };
	for (int i = 0; i < MANY; i++)
		harness_store(&h, 1, 10);
	harness_wait(&h, &h.nstored, MANY);
	struct spool_command *c = spool_command_new(SPOOL_DELETE, h.loop, NULL);
	loop_post(spool_loop(h.spool), &c->note);
	harness_store(&h, 1, 10); /* before it or behind it */
	harness_wait(&h, &h.ncommand, 1);
	harness_wait(&h, &h.nstored, MANY + 1);
	assert_int_equal(c->affected + harness_count(&h), MANY + 1);
	assert_true(c->affected >= MANY);
	spool_command_free(&c);
	harness_crash(&h);
	harness_open(&h);
	assert_true(harness_count(&h) <= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(list_goes_through_the_queue_page_by_page),
		HARNESS_TEST(what_is_stored_as_held_waits_for_the_operator),
		HARNESS_TEST(show_gives_envelope_verdicts_and_content),
		HARNESS_TEST(flush_makes_deferred_messages_due),
		HARNESS_TEST(what_is_flushed_is_urgent_once_and_nothing_else_is),
		HARNESS_TEST(what_was_flushed_before_a_stop_and_not_begun_is_due_after_it),
		HARNESS_TEST(what_was_flushed_before_a_stop_is_due_after_a_crash_behind_it_too),
		HARNESS_TEST(what_is_requeued_or_resumed_is_urgent),
		HARNESS_TEST(what_is_held_after_a_flush_is_not_urgent_when_it_is_returned),
		HARNESS_TEST(what_is_requeued_while_worked_on_is_urgent_afterwards),
		HARNESS_TEST(a_time_that_no_clock_reaches_is_not_taken_for_another),
		HARNESS_TEST(delete_takes_what_waits_and_cancels_what_is_being_worked_on),
		HARNESS_TEST(what_is_deleted_while_worked_on_is_not_found_by_a_later_order),
		HARNESS_TEST(a_later_order_does_not_undo_a_bounce_of_what_is_worked_on),
		HARNESS_TEST(what_is_released_while_worked_on_is_not_held_after_it),
		HARNESS_TEST(what_is_released_as_fresh_while_worked_on_begins_its_lifetime_anew),
		HARNESS_TEST(what_is_held_after_that_is_returned_when_it_is_released),
		HARNESS_TEST(a_bounce_counts_after_other_orders_and_a_deletion_after_it),
		HARNESS_TEST(a_deleted_message_stays_deleted_after_a_crash),
		HARNESS_TEST(a_long_queue_is_deleted_in_steps_and_answered_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
