/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/mem.h"
#include "smtpc/content_out.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct buf out;

static enum content_out_form form;

static void wire(const char *content, size_t len, size_t piece)
{
	struct content_out o;
	buf_clear(&out);
	content_out_init(&o, form);
	for (size_t at = 0; at < len; at += piece)
		content_out_put(&o, content + at, len - at < piece ? len - at : piece, &out);
	content_out_end(&o, &out);
}

static void check(const char *content, const char *expected)
{
	size_t len = strlen(content);
	for (size_t piece = 1; piece <= len + 1; piece++) {
		wire(content, len, piece);
		assert_string_equal(buf_cstr(&out), expected);
	}
}

static void a_chunk_is_as_long_as_its_content(void **state)
{
	(void)state;
	form = CONTENT_OUT_CHUNK;
	check(".a\r\n.\r\n..b\r\n", ".a\r\n.\r\n..b\r\n");
	check("a", "a");
	check("", "");
	check("a\rb\nc\r\n", "a b c\r\n");
	check("\r\r\n\n.\r\n", " \r\n .\r\n");
	check("a\r", "a ");
}

static void a_binary_chunk_is_its_content(void **state)
{
	(void)state;
	form = CONTENT_OUT_BINARY;
	check("\r.\n\r\r\n.\n", "\r.\n\r\r\n.\n");
}

static void the_end_is_a_dot_on_a_line(void **state)
{
	(void)state;
	check("a\r\n", "a\r\n.\r\n");
	check("a", "a\r\n.\r\n");
	check("", ".\r\n");
	check("\r\n", "\r\n.\r\n");
}

static void a_dot_at_the_start_of_a_line_is_doubled(void **state)
{
	(void)state;
	check(".\r\n", "..\r\n.\r\n");
	check("a\r\n.\r\nb\r\n", "a\r\n..\r\nb\r\n.\r\n");
	check("..a\r\n.", "...a\r\n..\r\n.\r\n");
	check("a.b\r\n", "a.b\r\n.\r\n");
}

static void a_stray_cr_or_lf_becomes_a_blank(void **state)
{
	(void)state;
	check("a\nb\r\n", "a b\r\n.\r\n");
	check("a\rb\r\n", "a b\r\n.\r\n");
	check("\n.\n\r\n", " . \r\n.\r\n");
	check("\r.\r\n", " .\r\n.\r\n");
	check("a\r", "a\r\n.\r\n");
	check("a\r\r\n", "a \r\n.\r\n");
	check("a\n", "a \r\n.\r\n");
}

static void no_other_end_of_data_can_be_smuggled(void **state)
{
	(void)state;
	check("a\n.\r\nb\r\n", "a .\r\nb\r\n.\r\n");
	check("a\r\n.\nb\r\n", "a\r\n.. b\r\n.\r\n");
	check("a\n.\nb\r\n", "a . b\r\n.\r\n");
	check("a\r.\rb\r\n", "a . b\r\n.\r\n");
	check("a\r\n.\rb\r\n", "a\r\n.. b\r\n.\r\n");
}

/* The plain way to say the same: byte by byte. */
static void model(const char *in, size_t len, struct buf *to)
{
	bool start = true;
	for (size_t i = 0; i < len; i++) {
		if (in[i] == '\r' && (i + 1 == len || in[i + 1] == '\n')) {
			buf_puts(to, "\r\n");
			start = true;
			i++;
			continue;
		}
		if (start && in[i] == '.')
			buf_puts(to, ".");
		buf_append(to, in[i] == '\r' || in[i] == '\n' ? " " : in + i, 1);
		start = false;
	}
	buf_puts(to, start ? ".\r\n" : "\r\n.\r\n");
}

static void any_content_in_any_pieces_is_as_the_plain_way_has_it(void **state)
{
	(void)state;
	static const char letters[] = "a.\r\n\r\n.b";
	unsigned seed = 7;
	struct buf expected;
	buf_init(&expected);
	for (int round = 0; round < 20000; round++) {
		char in[40];
		size_t len = (size_t)rand_r(&seed) % sizeof in;
		for (size_t i = 0; i < len; i++)
			in[i] = letters[(size_t)rand_r(&seed) % (sizeof letters - 1)];
		buf_clear(&expected);
		model(in, len, &expected);
		wire(in, len, 1 + (size_t)rand_r(&seed) % 10);
		assert_string_equal(buf_cstr(&out), buf_cstr(&expected));
	}
	buf_fini(&expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_is_a_dot_on_a_line),
		cmocka_unit_test(a_dot_at_the_start_of_a_line_is_doubled),
		cmocka_unit_test(a_stray_cr_or_lf_becomes_a_blank),
		cmocka_unit_test(no_other_end_of_data_can_be_smuggled),
		cmocka_unit_test(any_content_in_any_pieces_is_as_the_plain_way_has_it),
		cmocka_unit_test(a_chunk_is_as_long_as_its_content),
		cmocka_unit_test(a_binary_chunk_is_its_content),
	};
	buf_init(&out);
	int failed = RUN(tests);
	buf_fini(&out);
	return failed;
}
