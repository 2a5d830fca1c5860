/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "base/hint.h"
#include "qmgr/suppressed.h"

#include <string.h>

enum { DAY = 86400000 };

static struct suppressed s;

static int set_up(void **state)
{
	(void)state;
	suppressed_init(&s);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	suppressed_fini(&s);
	return 0;
}

static bool there(const char *address, int64_t now_ms)
{
	return suppressed_find(&s, address, now_ms, DAY) != NULL;
}

static void one_is_known_in_each_spelling_until_its_time_is_over(void **state)
{
	(void)state;
	assert_true(suppressed_note(&s,
				    "Bob@B\xc3\xbc"
				    "cher.test",
				    "mx.test[192.0.2.1]:25", 1000));
	assert_true(hint_maybe(HINT_SUPPRESSED, "bob@xn--bcher-kva.test"));
	assert_true(there("bob@XN--bcher-kva.test", 1000));
	assert_false(there("bobby@xn--bcher-kva.test", 1000));
	assert_false(suppressed_note(&s, "bob@xn--bcher-kva.test", "other.test", 1000 + DAY / 2));
	const struct suppressed_one *one =
		suppressed_find(&s, "bob@xn--bcher-kva.test", DAY + DAY / 2 + 999, DAY);
	assert_non_null(one);
	assert_string_equal(one->host, "other.test");
	assert_int_equal(one->since_ms, 1000);
	assert_false(there("bob@xn--bcher-kva.test", DAY + DAY / 2 + 1000));
	assert_non_null(
		suppressed_find(&s, "bob@xn--bcher-kva.test", DAY + DAY / 2 + 1000, 2 * DAY));
	suppressed_age(&s, DAY + DAY / 2 + 1000, DAY);
	assert_int_equal(s.n, 0);
	assert_false(hint_maybe(HINT_SUPPRESSED, "bob@xn--bcher-kva.test"));
}

/* A recipient that was refused while the clock was ten years ahead was so for ten years more. */
static void the_clock_may_be_put_back(void **state)
{
	const int64_t wrong_ms = INT64_C(3650) * DAY;
	(void)state;
	suppressed_note(&s, "a@x.test", "", wrong_ms);
	suppressed_note(&s, "b@x.test", "", 1000 + DAY);
	assert_false(there("a@x.test", 1000));
	assert_true(there("b@x.test", 1000));
	suppressed_age(&s, 1000, DAY);
	assert_int_equal(s.n, 1);
	suppressed_note(&s, "a@x.test", "", 1000);
	assert_true(there("a@x.test", 1000));
}

static void it_is_forgotten_and_off_finds_nobody_and_keeps_them(void **state)
{
	(void)state;
	suppressed_note(&s, "a@x.test", "", 1);
	suppressed_note(&s, "b@x.test", "", 2);
	assert_true(suppressed_forget(&s, "A@x.test"));
	assert_false(suppressed_forget(&s, "a@x.test"));
	assert_null(suppressed_find(&s, "b@x.test", 3, 0));
	suppressed_age(&s, INT64_C(1) << 50, 0);
	assert_true(there("b@x.test", 3));
	suppressed_age(&s, 1 + DAY, DAY);
	assert_int_equal(s.n, 1);
	suppressed_age(&s, 2 + DAY, DAY);
	assert_int_equal(s.n, 0);
}

static void beyond_the_most_the_one_refused_longest_ago_goes(void **state)
{
	(void)state;
	char address[40];
	for (int i = 0; i <= SUPPRESSED_MAX; i++) {
		snprintf(address, sizeof address, "u%d@x.test", i);
		suppressed_note(&s, address, "", i);
		if (i == SUPPRESSED_MAX - 1)
			suppressed_note(&s, "u0@x.test", "", i);
	}
	assert_int_equal(s.n, SUPPRESSED_MAX);
	assert_true(there("u0@x.test", 0));
	assert_false(there("u1@x.test", 0));
	assert_true(there("u2@x.test", 0));
}

static void as_text_they_are_the_same_again_and_nonsense_is_left_out(void **state)
{
	(void)state;
	struct buf first = {0}, second = {0};
	suppressed_note(&s, "\"odd one\"@x.test", "mx.test[192.0.2.1]:25", 1000);
	suppressed_note(&s, "b@x.test", "", 2000);
	suppressed_note(&s, "\"odd one\"@x.test", "mx.test[192.0.2.1]:25", 3000);
	suppressed_write(&s, &first);
	assert_string_equal(buf_cstr(&first),
			    "2000 2000 - b@x.test\n"
			    "1000 3000 mx.test[192.0.2.1]:25 \"odd one\"@x.test\n");
	suppressed_fini(&s);
	suppressed_init(&s);
	suppressed_read(&s, buf_cstr(&first));
	assert_false(s.changed);
	suppressed_read(&s,
			"\nnonsense\n1 2\n1 2 host\n1 2 host \n1 x host c@x.test\n9 9 - B@x.test");
	suppressed_write(&s, &second);
	assert_string_equal(buf_cstr(&second), buf_cstr(&first));
	buf_fini(&first);
	buf_fini(&second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_is_known_in_each_spelling_until_its_time_is_over),
		TEST(the_clock_may_be_put_back),
		TEST(it_is_forgotten_and_off_finds_nobody_and_keeps_them),
		TEST(beyond_the_most_the_one_refused_longest_ago_goes),
		TEST(as_text_they_are_the_same_again_and_nonsense_is_left_out),
	};
	return RUN(tests);
}
