/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/mem.h"
#include "tlsrpt/tlsrpt_report.h"

#include <isa-l.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { DAY = 20779, ROOM = 65536 };

/* The caller's to json_decref(). */
static json_t *read_gzipped(struct buf *report)
{
	struct inflate_state z;
	char text[ROOM];
	isal_inflate_init(&z);
	z.crc_flag = ISAL_GZIP;
	z.next_in = (uint8_t *)buf_data(report);
	z.avail_in = (uint32_t)buf_len(report);
	z.next_out = (uint8_t *)text;
	z.avail_out = sizeof text;
	assert_int_equal(isal_inflate(&z), ISAL_DECOMP_OK);
	json_t *all = json_loadb(text, z.total_out, 0, NULL);
	assert_non_null(all);
	return all;
}

static void add_failure(struct tlsrpt_tally *t, const char *reason)
{
	struct tls_subject *of = tls_subject_new(NULL, "a.test", NULL);
	struct tls_result *r = tls_result_new(of, TLS_RESULT_FAILED, reason);
	tlsrpt_tally_add(t, DAY, r);
	tls_result_free(&r);
	tls_subject_unref(of);
}

static const char *string_at(const json_t *of, const char *name)
{
	const char *text = json_string_value(json_object_get(of, name));
	assert_non_null(text);
	return text;
}

static void text_that_is_no_utf_8_leaves_nothing_out(void **state)
{
	static const struct tlsrpt_sender by = {"relay.test", "M\xfcller", "J\xf6rg@b.test",
						"a@b.test"};
	struct tlsrpt_tally t = {0};
	struct buf report = {0}, reason = {0};
	(void)state;
	for (int i = 0; i < 200; i++)
		buf_puts(&reason, i == 0 ? "x" : "\xc3\xbc"); /* it is cut inside of a character */
	add_failure(&t, buf_cstr(&reason));
	tlsrpt_report_write(tlsrpt_tally_get(&t, DAY, "a.test"), &by, &report);
	json_t *all = read_gzipped(&report);
	assert_string_equal(string_at(all, "organization-name"), "M?ller");
	assert_string_equal(string_at(all, "contact-info"), "J?rg@b.test");
	const json_t *policy = json_array_get(json_object_get(all, "policies"), 0);
	const json_t *detail = json_array_get(json_object_get(policy, "failure-details"), 0);
	assert_memory_equal(string_at(detail, "failure-reason-code"), "x\xc3\xbc\xc3\xbc", 5);
	json_decref(all);
	buf_fini(&reason);
	buf_fini(&report);
	tlsrpt_tally_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_that_is_no_utf_8_leaves_nothing_out),
	};
	return RUN(tests);
}
