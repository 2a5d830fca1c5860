/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/fence.h"
#include "replica/epoch.h"

#include <string.h>

static struct replica_epoch row(enum replica_state state)
{
	return (struct replica_epoch){
		.epoch = 7, .state = state, .lease_ms = 1000, .life = 42, .number = 3};
}

static enum epoch_start start(enum replica_state state, uint64_t life, uint64_t epoch)
{
	const struct replica_epoch r = row(state);
	return epoch_start(&r, &(struct epoch_own){.life = life, .epoch = epoch});
}

static void a_node_that_was_not_adopted_goes_on(void **state)
{
	(void)state;
	const struct epoch_own own = {.life = 42, .epoch = 7};
	assert_int_equal(epoch_start(NULL, &own), EPOCH_TAKE);
	assert_int_equal(start(REPLICA_UP, 42, 7), EPOCH_TAKE);
	assert_int_equal(start(REPLICA_UP, 42, 8), EPOCH_TAKE); /* noted, and not taken */
	assert_int_equal(start(REPLICA_DRAINED, 42, 7), EPOCH_TAKE);
	assert_int_equal(start(REPLICA_DRAINED, 42, 6),
			 EPOCH_TAKE); /* given back by who was to have it */
}

static void a_folder_that_is_older_than_its_row_or_its_stream_waits_for_an_order(void **state)
{
	(void)state;
	const struct epoch_own own = {.life = 42, .epoch = 7, .beat = 3};
	assert_int_equal(start(REPLICA_UP, 42, 6), EPOCH_DOUBT);
	assert_false(epoch_is_behind(&own, 0, 0));
	assert_false(epoch_is_behind(&own, 6, 9));
	assert_false(epoch_is_behind(&own, 7, 3));
	assert_true(epoch_is_behind(&own, 7, 4));
	assert_true(epoch_is_behind(&own, 8, 0));
}

static void a_bucket_that_is_older_than_the_folder_puts_nothing_aside(void **state)
{
	(void)state;
	assert_int_equal(start(REPLICA_UP, 43, 8), EPOCH_DOUBT);
	assert_int_equal(start(REPLICA_ADOPTING, 43, 8), EPOCH_DOUBT);
	assert_int_equal(start(REPLICA_ADOPTED, 43, 8), EPOCH_TAKE);
	const struct replica_epoch r = row(REPLICA_UP);
	assert_int_equal(epoch_next(&r, &(struct epoch_own){.epoch = 12}), 13);
	assert_int_equal(epoch_next(&r, &(struct epoch_own){.epoch = 3}), 8);
	assert_int_equal(epoch_next(NULL, &(struct epoch_own){.epoch = 0}), 1);
}

static enum epoch_row judged(enum replica_state state, uint64_t epoch, uint64_t life,
			     uint64_t revision)
{
	struct replica_epoch r = row(state);
	const struct replica_epoch ours = row(REPLICA_UP);
	r.epoch = epoch;
	r.life = life;
	return epoch_row(&r, revision, &ours, 50);
}

static void only_who_has_the_queue_puts_it_aside(void **state)
{
	(void)state;
	assert_int_equal(judged(REPLICA_UP, 7, 42, 50), EPOCH_HOLDS);
	assert_int_equal(judged(REPLICA_UP, 7, 42, 51), EPOCH_HOLDS); /* ours, not answered */
	assert_int_equal(judged(REPLICA_ADOPTING, 8, 42, 51), EPOCH_TAKEN);
	assert_int_equal(judged(REPLICA_ADOPTED, 8, 42, 51), EPOCH_TAKEN);
	assert_int_equal(judged(REPLICA_ADOPTING, 8, 42, 49), EPOCH_TAKEN);
	assert_int_equal(judged(REPLICA_UP, 10, 43, 55), EPOCH_TAKEN); /* it was adopted before */
	assert_int_equal(judged(REPLICA_UP, 6, 42, 49), EPOCH_OLDER);
	assert_int_equal(judged(REPLICA_ADOPTED, 6, 41, 49), EPOCH_OLDER);
	assert_int_equal(judged(REPLICA_UP, 8, 42, 51), EPOCH_STRANGE); /* a copy of this folder */
	assert_int_equal(judged(REPLICA_ADOPTED, 6, 42, 51), EPOCH_STRANGE);
	assert_int_equal(judged(REPLICA_ADOPTING, 7, 42, 51),
			 EPOCH_STRANGE); /* the bucket had lost ours */
}

static bool later(struct replica_epoch claim, struct replica_epoch than)
{
	return epoch_is_later(&claim, &than);
}

static void what_the_stream_says_later_than_the_bucket_holds(void **state)
{
	(void)state;
	struct replica_epoch up = row(REPLICA_UP), taken = row(REPLICA_ADOPTING);
	strcpy(up.by, "a");
	strcpy(taken.by, "b");
	assert_true(later(
		taken, up)); /* the bucket had lost that, and the other has taken the same epoch */
	assert_true(later(up, taken));
	taken.epoch++;
	assert_true(later(taken, up));
	assert_false(later(up, taken));
	struct replica_epoch had = taken, back = taken, retired = up;
	had.state = REPLICA_ADOPTED;
	back.state = REPLICA_DRAINED; /* given back */
	retired.state = REPLICA_RETIRED;
	assert_true(later(had, taken));
	assert_false(later(taken, had));
	assert_false(later(taken, back));
	assert_false(later(had, had));
	assert_false(later(had, retired));
}

static void one_that_was_puts_its_segments_aside(void **state)
{
	(void)state;
	assert_int_equal(start(REPLICA_ADOPTING, 42, 7), EPOCH_PAST);
	assert_int_equal(start(REPLICA_ADOPTED, 42, 7), EPOCH_PAST);
	assert_int_equal(start(REPLICA_UP, 43, 5), EPOCH_PAST); /* an old disk */
}

static void an_empty_one_waits_until_its_old_queue_was_taken(void **state)
{
	(void)state;
	assert_int_equal(start(REPLICA_UP, 43, 0), EPOCH_WAIT);
	assert_int_equal(start(REPLICA_DRAINED, 43, 0), EPOCH_WAIT);
	assert_int_equal(start(REPLICA_ADOPTING, 43, 0), EPOCH_WAIT);
	assert_int_equal(start(REPLICA_ADOPTED, 43, 0), EPOCH_TAKE);
}

static bool is_left(enum replica_state state, uint64_t life, enum epoch_bond bond)
{
	const struct replica_epoch r = row(state);
	return epoch_is_left(&r, &(struct epoch_own){.life = life, .epoch = 7, .bond = bond});
}

static void who_has_left_goes_on_where_nobody_has_adopted_it(void **state)
{
	(void)state;
	const struct epoch_own left = {.life = 42, .epoch = 7, .bond = EPOCH_LEFT};
	assert_false(epoch_is_left(NULL, &left));
	assert_false(is_left(REPLICA_UP, 42, EPOCH_LEFT));
	assert_false(is_left(REPLICA_DRAINED, 42, EPOCH_LEFT));
	assert_true(is_left(REPLICA_ADOPTING, 42, EPOCH_LEFT));
	assert_true(is_left(REPLICA_ADOPTED, 42, EPOCH_LEFT));
	assert_true(is_left(REPLICA_UP, 43, EPOCH_LEFT));
	assert_false(is_left(REPLICA_ADOPTED, 42, EPOCH_MEMBER));
	assert_false(is_left(REPLICA_ADOPTED, 42, EPOCH_DRAINED));
}

static void a_retired_name_never_comes_back(void **state)
{
	(void)state;
	assert_int_equal(start(REPLICA_RETIRED, 43, 0), EPOCH_NEVER);
	assert_int_equal(start(REPLICA_RETIRED, 43, 9),
			 EPOCH_NEVER); /* it was never a part of this */
}

static void the_queue_of_a_retired_name_is_put_aside(void **state)
{
	(void)state;
	assert_int_equal(start(REPLICA_RETIRED, 42, 7), EPOCH_PAST);
	assert_int_equal(start(REPLICA_RETIRED, 43, 7), EPOCH_PAST);
}

static void who_is_silent_for_two_leases_is_adopted(void **state)
{
	(void)state;
	const struct replica_epoch r = row(REPLICA_UP);
	struct sighting s = {.revision = 0};
	assert_int_equal(epoch_adopt(&r, &s, false, 1000000), EPOCH_NOT_YET);
	sighting_note(&s, 5, 1000);
	assert_int_equal(s.gap_ms, -1); /* nobody knows when it was written */
	sighting_note(&s, 5, 2500);
	assert_int_equal(epoch_adopt(&r, &s, false, 2999), EPOCH_NOT_YET);
	assert_int_equal(epoch_adopt(&r, &s, false, 3000), EPOCH_MAY);
	sighting_note(&s, 6, 3000);
	assert_int_equal(s.gap_ms, 500);
	assert_int_equal(epoch_adopt(&r, &s, false, 3001), EPOCH_NOT_YET);
}

static void an_order_does_not_wait_for_the_second_lease_but_for_the_first(void **state)
{
	(void)state;
	struct replica_epoch r = row(REPLICA_UP);
	struct sighting s = {.revision = 5, .since_ms = 1000};
	assert_int_equal(epoch_adopt(&r, &s, true, 2000), EPOCH_NOT_YET);
	assert_int_equal(epoch_adopt(&r, &s, true, 2200), EPOCH_MAY);
	r.lease_ms = 0;
	assert_int_equal(epoch_adopt(&r, &s, false, 1000000), EPOCH_NOT);
	assert_int_equal(epoch_adopt(&r, &s, true, 1000), EPOCH_MAY);
}

static void who_was_drained_is_adopted_at_once_and_nobody_twice(void **state)
{
	(void)state;
	const struct sighting s = {.revision = 5, .since_ms = 1000};
	for (int i = 0; i < REPLICA_STATES; i++) {
		const struct replica_epoch r = row((enum replica_state)i);
		if (i != REPLICA_UP)
			assert_int_equal(epoch_adopt(&r, &s, true, 1000000),
					 i == REPLICA_DRAINED ? EPOCH_MAY : EPOCH_NOT);
	}
}

/* Whatever is renewed and seen when: the fence has been closed for a lease when another begins. */
static void a_fence_is_closed_a_lease_before_another_begins(void **state)
{
	(void)state;
	for (int64_t delay = 0; delay < 900; delay += 7) {
		const struct replica_epoch r = row(REPLICA_UP);
		struct sighting s = {.revision = 0};
		int64_t fence = 0, asked = 0, t = 1;
		for (; epoch_adopt(&r, &s, false, t) != EPOCH_MAY; t++) {
			bool renews = t < 5000 && t % epoch_renew_ms(r.lease_ms) == 0;
			asked = renews ? t : asked;
			if (t == asked + delay)
				fence = epoch_fence_ms(asked, r.lease_ms);
			sighting_note(&s, 1 + (uint64_t)asked, t);
		}
		assert_true(fence + r.lease_ms <= t);
		assert_true(t < 5000 + 3 * r.lease_ms);
	}
	assert_int_equal(epoch_lease_ms(60000), 30000);
	assert_true(epoch_fence_ms(5, 0) == FENCE_NEVER);
}

static void others_are_looked_at_soon_however_long_a_lease_is(void **state)
{
	(void)state;
	assert_int_equal(epoch_renew_ms(epoch_lease_ms(10000)), 1000);
	assert_int_equal(epoch_renew_ms(epoch_lease_ms(60000)), 6000);
	assert_int_equal(epoch_renew_ms(epoch_lease_ms(86400000)), 6000);
	assert_in_range(epoch_renew_ms(epoch_lease_ms(0)), 1, 6000);
}

static void a_row_says_the_same_when_it_is_read_back(void **state)
{
	(void)state;
	struct replica_epoch a = row(REPLICA_ADOPTING), b;
	struct buf text = {0};
	strcpy(a.by, "n\"2");
	a.life = UINT64_MAX;
	a.seen_ms = 1700000000000;
	a.since = 6;
	replica_epoch_put(&text, &a);
	assert_true(replica_epoch_get(buf_data(&text), buf_len(&text), &b));
	assert_int_equal(b.state, a.state);
	assert_string_equal(b.by, a.by);
	assert_true(b.life == a.life && b.epoch == a.epoch && b.seen_ms == a.seen_ms);
	assert_true(b.lease_ms == a.lease_ms && b.number == a.number && b.since == a.since);
	assert_false(replica_epoch_get("{}", 2, &b));
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_that_was_not_adopted_goes_on),
		cmocka_unit_test(
			a_folder_that_is_older_than_its_row_or_its_stream_waits_for_an_order),
		cmocka_unit_test(a_bucket_that_is_older_than_the_folder_puts_nothing_aside),
		cmocka_unit_test(only_who_has_the_queue_puts_it_aside),
		cmocka_unit_test(what_the_stream_says_later_than_the_bucket_holds),
		cmocka_unit_test(one_that_was_puts_its_segments_aside),
		cmocka_unit_test(an_empty_one_waits_until_its_old_queue_was_taken),
		cmocka_unit_test(who_has_left_goes_on_where_nobody_has_adopted_it),
		cmocka_unit_test(a_retired_name_never_comes_back),
		cmocka_unit_test(the_queue_of_a_retired_name_is_put_aside),
		cmocka_unit_test(who_is_silent_for_two_leases_is_adopted),
		cmocka_unit_test(an_order_does_not_wait_for_the_second_lease_but_for_the_first),
		cmocka_unit_test(who_was_drained_is_adopted_at_once_and_nobody_twice),
		cmocka_unit_test(a_fence_is_closed_a_lease_before_another_begins),
		cmocka_unit_test(others_are_looked_at_soon_however_long_a_lease_is),
		cmocka_unit_test(a_row_says_the_same_when_it_is_read_back),
	};
	return RUN(tests);
}
