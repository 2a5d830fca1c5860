/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "replica/format.h"
#include "replica/stream_form.h"

/* As the library makes it for a bucket with one row of each name. */
static jsStreamConfig bucket(void)
{
	return (jsStreamConfig){.MaxMsgs = -1,
				.MaxBytes = -1,
				.MaxMsgSize = -1,
				.MaxMsgsPerSubject = 1,
				.Discard = js_DiscardNew,
				.Storage = js_FileStorage,
				.AllowRollup = true,
				.DenyDelete = true};
}

static void a_bucket_has_one_row_of_each_name_and_keeps_it(void **state)
{
	const jsStreamConfig c = bucket();
	(void)state;
	assert_true(stream_form_keeps_rows(&c));
	assert_false(stream_form_keeps(&c));
}

static void limits_that_take_rows_away_or_refuse_them_are_lifted(void **state)
{
	jsStreamConfig c[4] = {bucket(), bucket(), bucket(), bucket()};
	(void)state;
	c[0].MaxAge = 5000000000;
	c[1].MaxMsgSize = 64;
	c[2].MaxMsgs = 3;
	c[3].MaxBytes = 1 << 20;
	c[3].Discard = js_DiscardOld;
	for (int i = 0; i < 4; i++) {
		assert_false(stream_form_keeps_rows(&c[i]));
		stream_form_mend_rows(&c[i]);
		assert_true(stream_form_keeps_rows(&c[i]));
		assert_int_equal(c[i].MaxMsgsPerSubject, 1);
		assert_true(c[i].AllowRollup && c[i].DenyDelete);
	}
	assert_int_equal(c[1].MaxMsgSize, REPLICA_ROW_MAX);
	assert_int_equal(c[3].MaxBytes, 1 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bucket_has_one_row_of_each_name_and_keeps_it),
		cmocka_unit_test(limits_that_take_rows_away_or_refuse_them_are_lifted),
	};
	return RUN(tests);
}
