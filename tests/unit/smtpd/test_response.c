/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "base/mem.h"
#include "smtpd/response.h"

#include <stdlib.h>
#include <string.h>

static char *put(const char *reply)
{
	struct buf to = {0};
	response_put_given(&to, reply);
	return buf_steal(&to, NULL);
}

static void a_reply_that_is_given_has_its_lines(void **state)
{
	(void)state;
	char *one = put("550 5.7.1 no"), *two = put("451-4.2.0 one\r\n451 4.2.0 two");
	assert_string_equal(one, "550 5.7.1 no\r\n");
	assert_string_equal(two, "451-4.2.0 one\r\n451 4.2.0 two\r\n");
	free(one);
	free(two);
}

/* Of lines with CRLF: 512 bytes at most, the code in front, a hyphen behind it in all but the last. */
static void check_lines(const char *reply, const char *head, int lines)
{
	int n = 0;
	for (const char *line = reply; *line; n++) {
		size_t len = strcspn(line, "\r") + 2;
		assert_true(len <= 512);
		assert_memory_equal(line, head, 3);
		assert_int_equal(line[3], line[len] ? '-' : ' ');
		assert_memory_equal(line + 4, head + 4, strlen(head) - 4);
		line += len;
	}
	assert_int_equal(n, lines);
}

static void a_line_that_is_too_long_goes_on_behind_a_blank(void **state)
{
	(void)state;
	struct buf text = {0};
	buf_puts(&text, "550 5.7.1");
	for (int i = 0; i < 194; i++)
		buf_puts(&text, " word");
	assert_true(buf_len(&text) > 2 * 450);
	char *said = put(buf_cstr(&text));
	check_lines(said, "550 5.7.1 word", 2);
	free(said);
	buf_fini(&text);
}

static void one_without_a_blank_is_cut_where_it_must(void **state)
{
	(void)state;
	char text[1001] = "", *said;
	memset(text, 'x', sizeof text - 1);
	memcpy(text, "550 ", 4);
	said = put(text);
	check_lines(said, "550 x", 2);
	free(said);
	text[510] = '\0';
	said = put(text);
	check_lines(said, "550 x", 1);
	free(said);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reply_that_is_given_has_its_lines),
		cmocka_unit_test(a_line_that_is_too_long_goes_on_behind_a_blank),
		cmocka_unit_test(one_without_a_blank_is_cut_where_it_must),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
