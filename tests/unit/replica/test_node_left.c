/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "replica/node_left.h"

#include <string.h>

enum { LIFE = 42, OURS = 7 };

static const struct harvest_origin origin = {.life = LIFE, .epoch = OURS, .end = 100};

static enum left left(enum replica_state state, const char *by, uint64_t life, uint64_t since,
		      bool had)
{
	struct replica_epoch row = {.epoch = 9, .state = state, .life = life, .since = since};
	memcpy(row.by, by, strlen(by));
	return left_of("n1", &row, &origin, had);
}

static void while_its_row_names_us_it_is_taken_still(void **state)
{
	(void)state;
	assert_int_equal(left(REPLICA_ADOPTING, "n1", LIFE, 1, false), LEFT_TAKING);
	assert_int_equal(left_of("n1", NULL, &origin, false), LEFT_NOTHING);
}

static void what_its_row_says_that_we_have_is_ours(void **state)
{
	(void)state;
	assert_int_equal(left(REPLICA_ADOPTED, "n1", LIFE, 1, false), LEFT_OURS);
	assert_int_equal(left(REPLICA_RETIRED, "n1", LIFE, 1, false), LEFT_OURS);
}

static void what_another_has_or_its_node_itself_is_lost(void **state)
{
	(void)state;
	assert_int_equal(left(REPLICA_ADOPTING, "n2", LIFE, 1, false), LEFT_LOST);
	assert_int_equal(left(REPLICA_ADOPTED, "n2", LIFE, 1, false), LEFT_LOST);
	assert_int_equal(left(REPLICA_UP, "n0", LIFE, 1, true), LEFT_LOST);
}

/* Whatever we have taken since, by what its row said before. */
static void what_we_have_given_back_is_lost(void **state)
{
	(void)state;
	assert_int_equal(left(REPLICA_DRAINED, "n1", LIFE, 1, false), LEFT_LOST);
	assert_int_equal(left(REPLICA_DRAINED, "n0", LIFE, 1, false), LEFT_LOST);
}

/* We had it, and its node has begun anew since. */
static void of_a_life_that_is_past_it_is_ours_if_the_next_followed_it(void **state)
{
	(void)state;
	assert_int_equal(left(REPLICA_UP, "n0", LIFE + 1, OURS + 1, false), LEFT_OURS);
	assert_int_equal(left(REPLICA_ADOPTED, "n2", LIFE + 1, OURS + 1, false), LEFT_OURS);
	assert_int_equal(left(REPLICA_UP, "n0", LIFE + 1, OURS + 2, true), LEFT_OURS);
	assert_int_equal(left(REPLICA_UP, "n0", LIFE + 1, OURS + 2, false), LEFT_LOST);
}

/* One that is lost takes with it what is still to be ours, and nothing that is. */
static void of_two_that_were_taken_together_one_says_what_becomes_of_both(void **state)
{
	(void)state;
	assert_int_equal(left_of_both(LEFT_NOTHING, LEFT_TAKING), LEFT_TAKING);
	assert_int_equal(left_of_both(LEFT_TAKING, LEFT_LOST), LEFT_LOST);
	assert_int_equal(left_of_both(LEFT_LOST, LEFT_TAKING), LEFT_LOST);
	assert_int_equal(left_of_both(LEFT_OURS, LEFT_LOST), LEFT_OURS);
	assert_int_equal(left_of_both(LEFT_LOST, LEFT_UNREAD), LEFT_UNREAD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(while_its_row_names_us_it_is_taken_still),
		cmocka_unit_test(what_its_row_says_that_we_have_is_ours),
		cmocka_unit_test(what_another_has_or_its_node_itself_is_lost),
		cmocka_unit_test(what_we_have_given_back_is_lost),
		cmocka_unit_test(of_a_life_that_is_past_it_is_ours_if_the_next_followed_it),
		cmocka_unit_test(of_two_that_were_taken_together_one_says_what_becomes_of_both),
	};
	return RUN(tests);
}
