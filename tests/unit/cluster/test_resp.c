/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "cluster/resp.h"

#include <stdlib.h>
#include <string.h>

static struct resp r;
static struct buf in;

static int start(void **state)
{
	(void)state;
	resp_init(&r);
	buf_init(&in);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	resp_fini(&r);
	buf_fini(&in);
	return 0;
}

static void a_reply_comes_once_its_last_byte_has(void **state)
{
	static const char text[] = "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n:7\r\n";
	redisReply *reply = NULL;
	size_t array = strlen(text) - 4;
	(void)state;
	for (size_t i = 0; i < array - 1; i++) {
		buf_append(&in, text + i, 1);
		assert_int_equal(resp_next(&r, &in, &reply), RESP_NONE);
	}
	buf_append(&in, text + array - 1, 5);
	assert_int_equal(resp_next(&r, &in, &reply), RESP_REPLY);
	assert_true(resp_is_array(reply, 3));
	assert_string_equal(resp_text(reply->element[2]), "hi");
	freeReplyObject(reply);
	assert_int_equal(resp_next(&r, &in, &reply), RESP_REPLY);
	assert_int_equal(reply->integer, 7);
	freeReplyObject(reply);
	assert_int_equal(resp_next(&r, &in, &reply), RESP_NONE);
}

static void what_is_no_reply_is_a_fault_for_good(void **state)
{
	redisReply *reply = NULL;
	(void)state;
	buf_puts(&in, "220 mail.example.org ESMTP\r\n");
	assert_int_equal(resp_next(&r, &in, &reply), RESP_FAULT);
	buf_puts(&in, "+OK\r\n");
	assert_int_equal(resp_next(&r, &in, &reply), RESP_FAULT);
	assert_non_null(resp_fault(&r));
}

static void an_array_of_millions_takes_no_memory(void **state)
{
	redisReply *reply = NULL;
	(void)state;
	buf_puts(&in, "*2000000000\r\n");
	assert_int_equal(resp_next(&r, &in, &reply), RESP_FAULT);
	assert_string_equal(resp_fault(&r), "a reply has too many elements");
}

static void nor_do_arrays_in_arrays(void **state)
{
	redisReply *reply = NULL;
	(void)state;
	for (int i = 0; i < 6; i++)
		buf_puts(&in, "*100000\r\n");
	assert_int_equal(resp_next(&r, &in, &reply), RESP_FAULT);
	assert_string_equal(resp_fault(&r), "a reply has too many elements");
}

static void a_string_without_end_is_cut_off(void **state)
{
	static char many[64 << 10];
	redisReply *reply = NULL;
	enum resp_result result = RESP_NONE;
	size_t given = 0;
	(void)state;
	buf_puts(&in, "$2000000000\r\n");
	memset(many, 'x', sizeof many);
	while (result == RESP_NONE && given < 2 * RESP_REPLY_BYTES_MAX) {
		buf_append(&in, many, sizeof many);
		given += sizeof many;
		result = resp_next(&r, &in, &reply);
	}
	assert_int_equal(result, RESP_FAULT);
	assert_string_equal(resp_fault(&r), "a reply is too long");
}

static void a_command_may_have_any_bytes(void **state)
{
	const char *arg[] = {"SET", "k", "a\r\n\0b"};
	size_t len[] = {3, 1, 5};
	(void)state;
	resp_put(&in, 3, arg, len);
	assert_int_equal(buf_len(&in), 4 + 9 + 7 + 11);
	assert_memory_equal(buf_data(&in), "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\na\r\n\0b\r\n", 31);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_reply_comes_once_its_last_byte_has, start, stop),
		cmocka_unit_test_setup_teardown(what_is_no_reply_is_a_fault_for_good, start, stop),
		cmocka_unit_test_setup_teardown(an_array_of_millions_takes_no_memory, start, stop),
		cmocka_unit_test_setup_teardown(nor_do_arrays_in_arrays, start, stop),
		cmocka_unit_test_setup_teardown(a_string_without_end_is_cut_off, start, stop),
		cmocka_unit_test_setup_teardown(a_command_may_have_any_bytes, start, stop),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
