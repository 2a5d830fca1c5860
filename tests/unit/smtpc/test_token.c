/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "smtpc/token.h"

#include <string.h>

static void a_file_becomes_a_form(void **state)
{
	struct token_source s;
	struct buf why = {0}, form = {0};
	(void)state;
	assert_true(token_source_read(&s,
				      "# how\r\nendpoint = https://x.test/t\r\n\n client_id=me\n"
				      "client_secret = a=b&c d\nrefresh_token = r/+\n",
				      &why));
	token_source_form(&s, s.refresh_token, &form);
	assert_string_equal(buf_cstr(&form), "grant_type=refresh_token&refresh_token=r%2F%2B&"
					     "client_id=me&client_secret=a%3Db%26c%20d");
	token_source_fini(&s);
	buf_clear(&form);
	assert_true(token_source_read(
		&s, "endpoint = https://x.test/t\nclient_id = me\nscope = a b", &why));
	token_source_form(&s, s.refresh_token, &form);
	assert_string_equal(buf_cstr(&form),
			    "grant_type=client_credentials&client_id=me&scope=a%20b");
	token_source_fini(&s);
	buf_fini(&form);
}

static void what_is_no_such_file_is_said(void **state)
{
	static const char *const files[] = {
		"",
		"endpoint = https://x.test/\n",
		"client_id = me\n",
		"endpoint = http://x.test/\nclient_id = me\n",
		"endpoint = https://x.test/\nclient_id = me\nusername = x\n",
		"endpoint\nclient_id = me\n",
		"endpoint = https://x.test/\nclient_id =\n",
		"endpoint = https://x.test/\nclient_id = me\ndevice_endpoint = http://x.test/\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		struct token_source s;
		struct buf why = {0};
		assert_false(token_source_read(&s, files[i], &why));
		assert_true(buf_len(&why) > 0);
		token_source_fini(&s);
		buf_fini(&why);
	}
}

static bool answers(struct token_answer *a, long status, const char *body, struct buf *why)
{
	buf_clear(why);
	return token_answer_read(a, status, body, strlen(body), why);
}

static void an_answer_has_a_token_and_its_life(void **state)
{
	struct token_answer a;
	struct buf why = {0};
	(void)state;
	assert_true(answers(&a, 200, "{\"access_token\":\"t\",\"expires_in\":3599}", &why));
	assert_string_equal(a.access, "t");
	assert_int_equal(a.lifetime_ms, 3599000);
	assert_null(a.refresh);
	token_answer_fini(&a);
	/* One that has expired at once is not asked for without a pause; one for ever is. */
	assert_true(answers(&a, 200, "{\"access_token\":\"t\",\"expires_in\":0}", &why));
	assert_int_equal(a.lifetime_ms, 60000);
	token_answer_fini(&a);
	assert_true(answers(&a, 200,
			    "{\"access_token\":\"t\",\"expires_in\":\"99999999999\","
			    "\"refresh_token\":\"n\"}",
			    &why));
	assert_int_equal(a.lifetime_ms, 86400000);
	assert_string_equal(a.refresh, "n");
	token_answer_fini(&a);
	buf_fini(&why);
}

static void any_other_answer_says_why_not(void **state)
{
	static const struct {
		long status;
		const char *body, *why;
	} cases[] = {
		{401, "{\"error\":\"invalid_client\",\"error_description\":\"no\"}",
		 "it answers 401 invalid_client: no"},
		{500, "<html>", "it answers 500"},
		{200, "", "its answer is no JSON"},
		{200, "[1]", "its answer has no access_token"},
		{200, "{\"access_token\":7}", "its answer has no access_token"},
		{200, "{\"access_token\":\"a b\"}", "its answer has no access_token"},
		{200, "{\"access_token\":\"a\\u0001\"}", "its answer has no access_token"},
		{200, "{\"access_token\":\"a\",\"refresh_token\":\"b\\nc\"}",
		 "its answer has a refresh_token that is none"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct token_answer a;
		struct buf why = {0};
		assert_false(answers(&a, cases[i].status, cases[i].body, &why));
		assert_string_equal(buf_cstr(&why), cases[i].why);
		buf_fini(&why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_becomes_a_form),
		cmocka_unit_test(what_is_no_such_file_is_said),
		cmocka_unit_test(an_answer_has_a_token_and_its_life),
		cmocka_unit_test(any_other_answer_says_why_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
