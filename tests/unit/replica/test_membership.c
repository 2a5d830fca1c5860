/* SPDX-License-Identifier: ISC */
/* Whose the queue in a folder is, by what its file says of the node that it was. */
#include "tests/unit/base/unit.h"

#include "replica/life.h"
#include "replica/membership.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[40];

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/var/tmp/member-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	life_remove("/var/tmp", strrchr(folder, '/') + 1);
	return 0;
}

static struct epoch_own own(enum epoch_bond bond)
{
	return (struct epoch_own){
		.life = 42, .epoch = 7, .beat = 3, .name = "relay1", .bond = bond};
}

static enum membership judged(enum epoch_bond bond, const char *name)
{
	const struct epoch_own is = own(bond);
	return membership_judge(&is, name);
}

static void a_node_goes_on_under_its_name(void **state)
{
	(void)state;
	for (int bond = EPOCH_MEMBER; bond <= EPOCH_LEFT; bond++)
		assert_int_equal(judged((enum epoch_bond)bond, "relay1"), MEMBERSHIP_GOES_ON);
}

static void another_name_is_another_node(void **state)
{
	(void)state;
	assert_int_equal(judged(EPOCH_MEMBER, "relay2"), MEMBERSHIP_RENAMED);
	assert_int_equal(judged(EPOCH_MEMBER, "relay10"), MEMBERSHIP_RENAMED);
	assert_int_equal(judged(EPOCH_LEFT, "relay2"), MEMBERSHIP_RENAMED);
	assert_int_equal(judged(EPOCH_DRAINED, "relay2"), MEMBERSHIP_HANDED_OVER);
}

static void without_replication_others_would_not_be_asked(void **state)
{
	(void)state;
	assert_int_equal(judged(EPOCH_MEMBER, NULL), MEMBERSHIP_ALONE);
	assert_int_equal(judged(EPOCH_DRAINED, NULL), MEMBERSHIP_HANDED_OVER);
	assert_int_equal(judged(EPOCH_LEFT, NULL), MEMBERSHIP_GOES_ON);
}

static void whoever_had_no_epoch_is_free(void **state)
{
	const struct epoch_own is = {.life = 42, .name = "relay1"};
	(void)state;
	assert_int_equal(membership_judge(&is, NULL), MEMBERSHIP_GOES_ON);
	assert_int_equal(membership_judge(&is, "relay2"), MEMBERSHIP_GOES_ON);
}

static void a_name_counts_as_far_as_nats_has_it(void **state)
{
	struct epoch_own is = own(EPOCH_MEMBER);
	char longer[2 * REPLICA_NODE_MAX] = "";
	(void)state;
	memset(is.name, 'x', REPLICA_NODE_MAX);
	memset(longer, 'x', sizeof longer - 1);
	assert_int_equal(membership_judge(&is, longer), MEMBERSHIP_GOES_ON);
}

static void write_node(const char *text)
{
	char *path = NULL;
	assert_true(asprintf(&path, "%s/node", folder) > 0);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	free(path);
}

static void what_is_written_is_read(void **state)
{
	(void)state;
	for (int bond = EPOCH_MEMBER; bond <= EPOCH_LEFT; bond++) {
		struct epoch_own is = own((enum epoch_bond)bond), found;
		memset(is.name, 'x', bond == EPOCH_LEFT ? REPLICA_NODE_MAX : 6);
		assert_true(life_write(folder, &is));
		assert_true(life_read(folder, &found));
		assert_true(found.life == is.life && found.epoch == is.epoch &&
			    found.beat == is.beat && found.bond == is.bond);
		assert_string_equal(found.name, is.name);
	}
}

static void a_file_of_an_older_version_has_any_name(void **state)
{
	struct epoch_own found;
	(void)state;
	write_node("life=000000000000002a epoch=7 beat=3\n");
	assert_true(life_read(folder, &found));
	assert_true(found.life == 42 && found.epoch == 7 && found.beat == 3);
	assert_string_equal(found.name, "");
	assert_int_equal(membership_judge(&found, "relay1"), MEMBERSHIP_GOES_ON);
	assert_int_equal(membership_judge(&found, NULL), MEMBERSHIP_ALONE);
}

static bool leave(void)
{
	struct buf says = {0};
	bool done = membership_leave(folder, &says);
	assert_true(buf_len(&says) > 0);
	buf_fini(&says);
	return done;
}

static bool is_alone(void)
{
	struct buf why = {0};
	bool alone = membership_is_alone(folder, &why);
	assert_int_equal(buf_len(&why) == 0, alone);
	buf_fini(&why);
	return alone;
}

static void who_leaves_has_the_queue_alone(void **state)
{
	struct epoch_own is = own(EPOCH_MEMBER), found;
	(void)state;
	assert_true(is_alone());
	assert_false(leave());
	assert_true(life_write(folder, &is));
	assert_false(is_alone());
	assert_true(leave());
	assert_true(is_alone());
	assert_true(life_read(folder, &found));
	assert_true(found.bond == EPOCH_LEFT && found.life == 42 && found.epoch == 7);
	assert_string_equal(found.name, "relay1");
}

/* Of whom nothing is known nobody says that he has it. */
static void what_can_not_be_read_is_told_as_that(void **state)
{
	struct buf why = {0};
	char *path = NULL;
	(void)state;
	assert_true(asprintf(&path, "%s/node", folder) > 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_false(membership_is_alone(folder, &why));
	assert_non_null(strstr(buf_cstr(&why), "/node: Is a directory"));
	buf_fini(&why);
	free(path);
}

static void what_was_handed_over_stays_with_the_others(void **state)
{
	const struct epoch_own is = own(EPOCH_DRAINED);
	(void)state;
	assert_true(life_write(folder, &is));
	assert_false(leave());
	assert_false(is_alone());
}

static void who_adopts_can_not_leave(void **state)
{
	const struct epoch_own is = own(EPOCH_MEMBER);
	char *path = NULL;
	(void)state;
	assert_true(life_write(folder, &is));
	assert_true(asprintf(&path, "%s/adopting", folder) > 0);
	close(open(path, O_WRONLY | O_CREAT, 0600));
	free(path);
	assert_true(membership_adopts(folder));
	assert_false(leave());
	write_node("life=000000000000002a epoch=0 beat=0\n");
	assert_false(is_alone());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_node_goes_on_under_its_name),
		TEST(another_name_is_another_node),
		TEST(without_replication_others_would_not_be_asked),
		TEST(whoever_had_no_epoch_is_free),
		TEST(a_name_counts_as_far_as_nats_has_it),
		TEST(what_is_written_is_read),
		TEST(a_file_of_an_older_version_has_any_name),
		TEST(who_leaves_has_the_queue_alone),
		TEST(what_can_not_be_read_is_told_as_that),
		TEST(what_was_handed_over_stays_with_the_others),
		TEST(who_adopts_can_not_leave),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
