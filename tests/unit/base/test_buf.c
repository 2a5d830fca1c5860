/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/buf.h"

#include <stdlib.h>
#include <string.h>

static void what_is_appended_comes_out_in_order(void **state)
{
	(void)state;
	struct buf b = {0};
	buf_puts(&b, "one ");
	buf_append(&b, "two", 3);
	buf_printf(&b, " %d", 3);
	assert_string_equal(buf_cstr(&b), "one two 3");
	assert_int_equal(buf_len(&b), 9);
	buf_fini(&b);
}

static void consuming_all_starts_again_at_the_beginning(void **state)
{
	(void)state;
	struct buf b = {0};
	buf_puts(&b, "abc");
	buf_consume(&b, 2);
	assert_string_equal(buf_cstr(&b), "c");
	buf_consume(&b, 1);
	assert_int_equal(b.head, 0);
	assert_int_equal(buf_len(&b), 0);
	buf_fini(&b);
}

static void many_small_steps_keep_every_byte(void **state)
{
	(void)state;
	struct buf b = {0};
	unsigned char in = 0, out = 0;
	for (int i = 0; i < 20000; i++) {
		char block[37];
		for (size_t k = 0; k < sizeof block; k++)
			block[k] = (char)in++;
		buf_append(&b, block, sizeof block);
		for (size_t n = (size_t)i % 41; n > 0 && buf_len(&b) > 0; n--) {
			assert_int_equal((unsigned char)*buf_data(&b), out++);
			buf_consume(&b, 1);
		}
	}
	while (buf_len(&b) > 0) {
		assert_int_equal((unsigned char)*buf_data(&b), out++);
		buf_consume(&b, 1);
	}
	assert_int_equal(in, out);
	buf_fini(&b);
}

static void what_is_printed_is_whole_whatever_room_there_was(void **state)
{
	(void)state;
	char text[900];
	for (size_t before = 1; before < 600; before += 7) {
		for (size_t len = 0; len < sizeof text; len += 13) {
			struct buf b = {0};
			memset(text, 'x', sizeof text);
			text[len] = '\0';
			memset(buf_reserve(&b, before), '-', before);
			buf_commit(&b, before);
			buf_consume(&b, before / 2);
			buf_printf(&b, "<%s>%d", text, 17);
			assert_int_equal(buf_len(&b), before - before / 2 + len + 4);
			assert_memory_equal(buf_data(&b) + before - before / 2 + 1, text, len);
			assert_string_equal(buf_cstr(&b) + buf_len(&b) - 3, ">17");
			buf_fini(&b);
		}
	}
}

static void an_empty_buffer_gives_its_memory_back_and_a_full_one_keeps_it(void **state)
{
	(void)state;
	struct buf b = {0};
	buf_puts(&b, "x");
	buf_release(&b);
	assert_non_null(b.data);
	buf_consume(&b, 1);
	buf_release(&b);
	assert_null(b.data);
}

static void stolen_bytes_are_a_string_and_leave_nothing(void **state)
{
	(void)state;
	struct buf b = {0};
	size_t len;
	buf_puts(&b, "..hello");
	buf_consume(&b, 2);
	char *text = buf_steal(&b, &len);
	assert_string_equal(text, "hello");
	assert_int_equal(len, 5);
	assert_int_equal(buf_len(&b), 0);
	assert_null(b.data);
	free(text);
}

static void stealing_nothing_gives_an_empty_string(void **state)
{
	(void)state;
	struct buf b = {0};
	char *text = buf_steal(&b, NULL);
	assert_string_equal(text, "");
	free(text);
}

static void what_is_at_the_end_can_be_dropped(void **state)
{
	(void)state;
	struct buf b = {0};
	buf_puts(&b, "abcdef");
	buf_consume(&b, 2);
	buf_shorten(&b, 1);
	assert_string_equal(buf_cstr(&b), "cde");
	buf_shorten(&b, 3);
	assert_int_equal(buf_len(&b), 0);
	buf_puts(&b, "x");
	assert_string_equal(buf_cstr(&b), "x");
	buf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_at_the_end_can_be_dropped),
		cmocka_unit_test(what_is_appended_comes_out_in_order),
		cmocka_unit_test(consuming_all_starts_again_at_the_beginning),
		cmocka_unit_test(many_small_steps_keep_every_byte),
		cmocka_unit_test(what_is_printed_is_whole_whatever_room_there_was),
		cmocka_unit_test(an_empty_buffer_gives_its_memory_back_and_a_full_one_keeps_it),
		cmocka_unit_test(stolen_bytes_are_a_string_and_leave_nothing),
		cmocka_unit_test(stealing_nothing_gives_an_empty_string),
	};
	return RUN(tests);
}
