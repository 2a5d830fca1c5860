/* SPDX-License-Identifier: ISC */
#include "base/trust_anchor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define DIGEST "E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D"
#define ROOT ". IN DS 20326 8 2 " DIGEST "\n"
#define OTHER "example. 300 IN DS 1 8 2 " DIGEST "\n"

static struct trust_anchor anchor;
static struct buf why;

static bool read_text(const char *text)
{
	char file[] = "/tmp/sluice-anchor-XXXXXX";
	int fd = mkstemp(file);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	bool good = trust_anchor_read(&anchor, file, &why);
	unlink(file);
	return good;
}

static int forget(void **state)
{
	(void)state;
	trust_anchor_fini(&anchor);
	buf_fini(&why);
	return 0;
}

static void keys_are_read_and_comments_passed_over(void **state)
{
	(void)state;
	assert_true(read_text("; the root\n\n" ROOT OTHER ROOT "; the end"));
	assert_int_equal(anchor.n, 3);
	assert_non_null(strstr(anchor.record[0], "20326"));
	assert_memory_equal(anchor.record[1], "example.", 8);
}

static void without_a_key_of_the_root_there_is_no_chain(void **state)
{
	(void)state;
	assert_false(read_text(OTHER));
	assert_non_null(strstr(buf_cstr(&why), "of the root"));
	assert_int_equal(anchor.n, 0);
	assert_false(read_text(""));
}

static void what_is_no_key_is_said_with_its_line(void **state)
{
	(void)state;
	static const char *const texts[] = {ROOT "nonsense\n", ROOT ". IN A 192.0.2.1\n",
					    ROOT ". IN DS 1 8 2\n"};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		assert_false(read_text(texts[i]));
		assert_non_null(strstr(buf_cstr(&why), ":2: no DS or DNSKEY record"));
		buf_clear(&why);
	}
}

static void thousands_of_keys_are_too_many(void **state)
{
	(void)state;
	struct buf text = {0};
	for (int i = 0; i < 2000; i++)
		buf_puts(&text, ROOT);
	assert_false(read_text(buf_cstr(&text)));
	buf_fini(&text);
}

static void a_missing_file_is_a_fault(void **state)
{
	(void)state;
	assert_false(trust_anchor_read(&anchor, "/nowhere/root.key", &why));
	assert_non_null(strstr(buf_cstr(&why), "/nowhere/root.key: "));
}

static void a_folder_is_a_fault(void **state)
{
	(void)state;
	assert_false(trust_anchor_read(&anchor, "/", &why));
	assert_string_equal(buf_cstr(&why), "/: can't be read");
}

#define TEST(f) cmocka_unit_test_teardown(f, forget)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(keys_are_read_and_comments_passed_over),
		TEST(without_a_key_of_the_root_there_is_no_chain),
		TEST(what_is_no_key_is_said_with_its_line),
		TEST(thousands_of_keys_are_too_many),
		TEST(a_missing_file_is_a_fault),
		TEST(a_folder_is_a_fault),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
