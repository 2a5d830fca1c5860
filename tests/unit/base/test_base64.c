/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/base64.h"

#include <string.h>

static void what_is_encoded_can_be_decoded(void **state)
{
	(void)state;
	for (size_t len = 0; len < 40; len++) {
		struct buf text = {0}, back = {0};
		unsigned char bytes[40];
		for (size_t i = 0; i < len; i++)
			bytes[i] = (unsigned char)(i * 37 + len);
		base64_encode(&text, bytes, len);
		assert_int_equal(buf_len(&text), (len + 2) / 3 * 4);
		assert_true(base64_decode(&back, buf_cstr(&text), buf_len(&text)));
		assert_int_equal(buf_len(&back), len);
		if (len > 0)
			assert_memory_equal(buf_data(&back), bytes, len);
		buf_wipe(&text);
		buf_wipe(&back);
	}
}

static void what_is_none_is_refused_whole(void **state)
{
	static const char *const bad[] = {
		"A",	    "AA",    "AAA",  "AA=A", "=AAA", "A===", "====",  "AA==A",
		"AA==AAAA", "AA\n=", "AAA-", "AA A", "AB==", "AAB=", "\tAAA", "AAAA\n"};
	struct buf to = {0};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_false(base64_decode(&to, bad[i], strlen(bad[i])));
		assert_int_equal(buf_len(&to), 0);
	}
	assert_true(base64_decode(&to, "AA==AA", 4));
	assert_int_equal(buf_len(&to), 1);
	buf_fini(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_encoded_can_be_decoded),
		cmocka_unit_test(what_is_none_is_refused_whole),
	};
	return RUN(tests);
}
