/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "cmd/sink/sink_data.c"

/* The wire in pieces of every size must give the same. rest: what follows the end, or NULL: no
 * end. */
static void expect(const char *wire, const char *content, const char *rest)
{
	size_t len = strlen(wire);
	for (size_t piece = 1; piece <= len; piece++) {
		struct sink_data d = {0};
		struct buf to;
		size_t used = 0;
		buf_init(&to);
		while (used < len && d.state != SINK_DATA_END) {
			size_t n = len - used < piece ? len - used : piece;
			used += sink_data_take(&d, wire + used, n, &to);
		}
		assert_int_equal(d.state == SINK_DATA_END, rest != NULL);
		if (rest) {
			assert_string_equal(buf_cstr(&to), content);
			assert_string_equal(wire + used, rest);
		}
		buf_fini(&to);
	}
}

static void the_end_is_a_dot_on_its_own_line(void **state)
{
	(void)state;
	expect("a\r\n.\r\nQUIT\r\n", "a\r\n", "QUIT\r\n");
	expect(".\r\n", "", "");
	expect("\r\n.\r\n", "\r\n", "");
}

static void a_dot_too_many_is_taken_away(void **state)
{
	(void)state;
	expect("..\r\n...\r\n.a\r\nb.\r\n.\r\n", ".\r\n..\r\na\r\nb.\r\n", "");
}

static void nothing_else_is_an_end(void **state)
{
	(void)state;
	expect("a\n.\n", NULL, NULL);
	expect("a\r\n.\n", NULL, NULL);
	expect("a\n.\r\n", NULL, NULL);
	expect("a\r.\r\n", NULL, NULL);
	expect("a\r\n.\r", NULL, NULL);
	expect("a\r\n.\rb\r\n.\r\n", "a\r\n\rb\r\n", "");
	expect("a\r\n.\r\r\n.\r\n", "a\r\n\r\r\n", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_is_a_dot_on_its_own_line),
		cmocka_unit_test(a_dot_too_many_is_taken_away),
		cmocka_unit_test(nothing_else_is_an_end),
	};
	return RUN(tests);
}
