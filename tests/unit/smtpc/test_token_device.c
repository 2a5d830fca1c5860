/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "smtpc/token_device.h"

#include <string.h>

static void a_code_is_asked_for_and_asked_about(void **state)
{
	struct token_source s = {.client_id = (char *)"me", .scope = (char *)"a b"};
	struct token_device d = {.code = (char *)"c/1"};
	struct buf form = {0};
	(void)state;
	token_device_form(&s, &form);
	assert_string_equal(buf_cstr(&form), "client_id=me&scope=a%20b");
	buf_clear(&form);
	s.client_secret = (char *)"x";
	token_device_poll_form(&s, &d, &form);
	assert_string_equal(buf_cstr(&form),
			    "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Adevice_code&"
			    "device_code=c%2F1&client_id=me&client_secret=x");
	buf_fini(&form);
}

static bool reads(struct token_device *d, long status, const char *body, struct buf *why)
{
	buf_clear(why);
	return token_device_read(d, status, body, strlen(body), why);
}

static void both_spellings_of_the_address_are_read(void **state)
{
	struct token_device d;
	struct buf why = {0};
	(void)state;
	assert_true(reads(&d, 200,
			  "{\"device_code\":\"d\",\"user_code\":\"U-1\",\"verification_uri\":"
			  "\"https://a.test/\",\"interval\":7,\"expires_in\":100}",
			  &why));
	assert_string_equal(d.code, "d");
	assert_string_equal(d.user_code, "U-1");
	assert_string_equal(d.address, "https://a.test/");
	assert_int_equal(d.interval_ms, 7000);
	assert_int_equal(d.lifetime_ms, 100000);
	token_device_fini(&d);
	assert_true(reads(&d, 200,
			  "{\"device_code\":\"d\",\"user_code\":\"U\",\"verification_url\":"
			  "\"https://b.test/\",\"interval\":0,\"expires_in\":99999999999}",
			  &why));
	assert_string_equal(d.address, "https://b.test/");
	assert_int_equal(d.interval_ms, 1000);
	assert_int_equal(d.lifetime_ms, 3600000);
	token_device_fini(&d);
	assert_true(reads(&d, 200,
			  "{\"device_code\":\"d\",\"user_code\":\"U\",\"verification_uri\":"
			  "\"https://b.test/\",\"interval\":\"x\"}",
			  &why));
	assert_int_equal(d.interval_ms, 5000);
	assert_int_equal(d.lifetime_ms, 900000);
	token_device_fini(&d);
	buf_fini(&why);
}

static void what_can_not_be_shown_is_no_answer(void **state)
{
	static const char *const bodies[] = {
		"",
		"[]",
		"{}",
		"{\"device_code\":\"d\",\"user_code\":\"U\"}",
		"{\"device_code\":\"d\",\"user_code\":\"\",\"verification_uri\":\"https://a/\"}",
		"{\"device_code\":\"d\",\"user_code\":\"\\u001b[2J\",\"verification_uri\":"
		"\"https://a/\"}",
		"{\"device_code\":\"d\",\"user_code\":\"U\",\"verification_uri\":\"javascript:1\"}",
		"{\"device_code\":\"d\",\"user_code\":\"U\",\"verification_uri\":\"https://"
		"\xc3\xa4/\"}",
		"{\"device_code\":7,\"user_code\":\"U\",\"verification_uri\":\"https://a/\"}",
	};
	(void)state;
	for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
		struct token_device d;
		struct buf why = {0};
		assert_false(reads(&d, 200, bodies[i], &why));
		assert_true(buf_len(&why) > 0);
		token_device_fini(&d);
		assert_false(reads(&d, 400, "{\"error\":\"invalid_scope\"}", &why));
		assert_string_equal(buf_cstr(&why), "it answers 400 invalid_scope");
		buf_fini(&why);
	}
}

static void errors_have_their_meaning(void **state)
{
	static const struct {
		const char *word;
		enum token_error error;
	} cases[] = {{"authorization_pending", TOKEN_ERROR_PENDING},
		     {"slow_down", TOKEN_ERROR_SLOW_DOWN},
		     {"access_denied", TOKEN_ERROR_DENIED},
		     {"authorization_declined", TOKEN_ERROR_DENIED},
		     {"expired_token", TOKEN_ERROR_EXPIRED},
		     {"invalid_grant", TOKEN_ERROR_GRANT},
		     {"invalid_client", TOKEN_ERROR_OTHER}};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct token_answer a;
		struct buf why = {0}, body = {0};
		buf_printf(&body, "{\"error\":\"%s\"}", cases[i].word);
		assert_false(token_answer_read(&a, 400, buf_data(&body), buf_len(&body), &why));
		assert_int_equal(a.error, cases[i].error);
		buf_fini(&body);
		buf_fini(&why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_code_is_asked_for_and_asked_about),
		cmocka_unit_test(both_spellings_of_the_address_are_read),
		cmocka_unit_test(what_can_not_be_shown_is_no_answer),
		cmocka_unit_test(errors_have_their_meaning),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
