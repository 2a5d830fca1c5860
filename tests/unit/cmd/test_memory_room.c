/* SPDX-License-Identifier: ISC */
/* What limits the memory of a process, and who is told. */
#include "tests/unit/base/sanitized.h"
#include "tests/unit/cmd/unit.h"

#include "cmd/watch/memory_room.c"

#include <stdio.h>

enum { MB = 1 << 20 };

static char folder[] = "/tmp/sluice-test-XXXXXX";

static int begin(void **state)
{
	(void)state;
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	char *command = mem_printf("rm -r %s", folder);
	int rc = system(command);
	free(command);
	return rc;
}

static void put_limit(const char *group, const char *name, const char *text)
{
	char *path = mem_printf("%s%s", folder, group);
	char *command = mem_printf("mkdir -p %s", path);
	assert_int_equal(system(command), 0);
	free(command);
	char *file = mem_printf("%s/%s", path, name);
	FILE *f = fopen(file, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	free(file);
	free(path);
}

static int64_t room_in(const char *groups)
{
	struct memory_room r = {1000 * (int64_t)MB, "the machine"};
	memory_room_of_groups(&r, groups, folder);
	return r.bytes / MB;
}

static void the_narrowest_group_of_version_2_counts(void **state)
{
	(void)state;
	put_limit("/a/b", "memory.max", "max\n");
	assert_int_equal(room_in("0::/a/b\n"), 1000);
	put_limit("/a", "memory.max", "50331648\n");
	assert_int_equal(room_in("0::/a/b\n"), 48);
	put_limit("/a/b", "memory.max", "33554432\n");
	assert_int_equal(room_in("0::/a/b\n"), 32);
}

static void the_narrowest_group_of_version_1_counts(void **state)
{
	(void)state;
	put_limit("/memory/a", "memory.limit_in_bytes", "50331648\n");
	put_limit("/memory/a/b", "memory.limit_in_bytes", "9223372036854771712\n");
	assert_int_equal(room_in("5:cpu:/a\n4:cpuset,memory:/a/b\n"), 48);
	assert_int_equal(room_in("5:cpu:/a/b\n4:memory:/\n"), 1000);
}

static void a_container_that_does_not_see_its_group_has_it_at_the_top(void **state)
{
	(void)state;
	put_limit("/memory", "memory.limit_in_bytes", "50331648\n");
	assert_int_equal(room_in("4:memory:/docker/0123\n"), 48);
}

static void what_is_no_list_of_groups_limits_nothing(void **state)
{
	(void)state;
	assert_int_equal(room_in("\n:\n::\n0:\nmemory\n0::/b\n"), 1000);
}

static void who_promises_more_than_there_is_is_told(void **state)
{
	(void)state;
	struct buf says = {0};
	struct memory_room r = {384 * (int64_t)MB, "the machine"};
	struct conf *conf = conf_defaults();
	assert_false(memory_room_lacks(&r, conf, &says));
	r = (struct memory_room){48 * (int64_t)MB, "its cgroup"};
	assert_true(memory_room_lacks(&r, conf, &says));
	assert_non_null(strstr(buf_cstr(&says), "384 MB"));
	assert_non_null(strstr(buf_cstr(&says), "48 MB (its cgroup)"));
	buf_fini(&says);
	conf_unref(conf);
}

static void a_limit_of_the_process_counts(void **state)
{
	(void)state;
	struct rlimit all, few;
	if (SANITIZED)
		skip(); /* it needs more than any limit for its own */
	assert_int_equal(getrlimit(RLIMIT_DATA, &all), 0);
	few = (struct rlimit){40 * MB, all.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_DATA, &few), 0);
	struct memory_room r = memory_room_find();
	setrlimit(RLIMIT_DATA, &all);
	assert_int_equal(r.bytes / MB, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_narrowest_group_of_version_2_counts, begin,
						end),
		cmocka_unit_test_setup_teardown(the_narrowest_group_of_version_1_counts, begin,
						end),
		cmocka_unit_test_setup_teardown(
			a_container_that_does_not_see_its_group_has_it_at_the_top, begin, end),
		cmocka_unit_test_setup_teardown(what_is_no_list_of_groups_limits_nothing, begin,
						end),
		cmocka_unit_test(who_promises_more_than_there_is_is_told),
		cmocka_unit_test(a_limit_of_the_process_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
