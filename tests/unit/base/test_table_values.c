/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/access_value.h"
#include "base/dkim_rows.h"
#include "base/route_value.h"
#include "base/tables.h"

#include <string.h>
#include <unistd.h>

static void route_is(const char *text, enum route_action action, const char *transport, int relays,
		     const char *dsn, const char *said)
{
	struct route_value v;
	struct buf why = {0};
	assert_null(route_value_parse(text, &v, &why));
	assert_int_equal(v.action, action);
	assert_int_equal(v.relay.n, relays);
	assert_string_equal(v.transport ? v.transport : "", transport);
	assert_string_equal(v.dsn, dsn);
	assert_string_equal(v.text ? v.text : "", said);
	route_value_fini(&v);
	buf_fini(&why);
}

static void a_route_is_a_transport_relays_an_error_or_the_end(void **state)
{
	(void)state;
	route_is("slow", ROUTE_DELIVER, "slow", 0, "", "");
	route_is("relay=a.test", ROUTE_DELIVER, "", 1, "", "");
	route_is(" relay=[10.0.0.5]:25=3,b.test=1,c\n slow ", ROUTE_DELIVER, "slow", 3, "", "");
	route_is("slow verify", ROUTE_DELIVER, "slow", 0, "", "");
	route_is("verify relay=a.test", ROUTE_DELIVER, "", 1, "", "");
	route_is("Error 5.1.2 no such domain", ROUTE_ERROR, "", 0, "5.1.2", "no such domain");
	route_is("error 4.3.0 later", ROUTE_ERROR, "", 0, "4.3.0", "later");
	route_is("error gone", ROUTE_ERROR, "", 0, "5.0.0", "gone");
	route_is("discard", ROUTE_DISCARD, "", 0, "", "");
	route_is("discard spam trap", ROUTE_DISCARD, "", 0, "", "spam trap");
}

static void what_is_no_route_is_found(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",	      "a b",	     "relay=[x",	"relay=a=0",
		"relay=a=x",  "relay=a,,b",  "relay=a relay=b", "verify verify",
		"speed=fast", "relay=a b c", "error 5.1.1 \xc3"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct route_value v;
		struct buf why = {0};
		if (!route_value_parse(bad[i], &v, &why))
			fail_msg("taken: %s", bad[i]);
		assert_true(buf_len(&why) > 0);
		route_value_fini(&v);
		buf_fini(&why);
	}
}

static void access_is(const char *text, enum access_action action, int code, const char *dsn,
		      const char *said)
{
	struct access_value v;
	struct buf why = {0};
	assert_null(access_value_parse(text, &v, &why));
	assert_int_equal(v.action, action);
	assert_int_equal(v.code, code);
	assert_string_equal(v.dsn, dsn);
	assert_string_equal(v.text ? v.text : "", said);
	access_value_fini(&v);
	buf_fini(&why);
}

static void access_is_a_word_or_a_code(void **state)
{
	(void)state;
	access_is("OK", ACCESS_ACCEPT, 0, "", "");
	access_is("accept", ACCESS_ACCEPT, 0, "", "");
	access_is("hold", ACCESS_HOLD, 0, "", "");
	access_is("discard", ACCESS_DISCARD, 0, "", "");
	access_is("reject", ACCESS_REFUSE, 550, "5.7.1", "access denied");
	access_is("reject 554 5.1.1 no such user", ACCESS_REFUSE, 554, "5.1.1", "no such user");
	access_is("reject not here", ACCESS_REFUSE, 550, "5.7.1", "not here");
	access_is("defer 4.2.0 later", ACCESS_REFUSE, 450, "4.2.0", "later");
	access_is("451 later", ACCESS_REFUSE, 451, "4.7.1", "later");
	access_is("dunno", ACCESS_ACCEPT, 0, "", "");
	access_is("FLOW  news_1", ACCESS_FLOW, 0, "", "news_1");
}

static void what_is_no_access_is_found(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
					  "maybe",
					  "250 fine",
					  "reject 450 no",
					  "defer 550",
					  "421 bye",
					  "reject \x01",
					  "reject 250 fine",
					  "reject 421 bye",
					  "flow",
					  "flow two words"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct access_value v;
		struct buf why = {0};
		if (!access_value_parse(bad[i], &v, &why))
			fail_msg("taken: %s", bad[i]);
		access_value_fini(&v);
		buf_fini(&why);
	}
}

static void a_row_of_keys_has_a_selector_and_a_file_each(void **state)
{
	static const char *const bad[] = {"",
					  "s",
					  "s /x,",
					  "s x",
					  "s_1 /x",
					  ", s /x",
					  "a /x,b /x,c /x,d /x,e /x,f /x,g /x,h /x,i /x"};
	struct dkim_rows r;
	struct buf why = {0};
	(void)state;
	assert_null(dkim_rows_parse(" s1\t/a/b.pem ,e1  /c d.pem", &r, &why));
	assert_int_equal(r.n, 2);
	assert_string_equal(r.row[0].selector, "s1");
	assert_string_equal(r.row[0].file, "/a/b.pem");
	assert_string_equal(r.row[1].selector, "e1");
	assert_string_equal(r.row[1].file, "/c d.pem");
	dkim_rows_fini(&r);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_non_null(dkim_rows_parse(bad[i], &r, &why));
		assert_true(buf_len(&why) > 0);
		buf_clear(&why);
		dkim_rows_fini(&r);
	}
	buf_fini(&why);
}

/* A signature of any client's may name such: that a look-up ends is all there is to see. */
static void rows_for_what_is_no_domain_are_none(void **state)
{
	static const char *const none[] = {"", ".", "..", ".a.test", "a..test", "a.test."};
	struct dkim_rows r;
	(void)state;
	alarm(10);
	for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
		assert_false(dkim_rows_find(NULL, none[i], &r));
	alarm(0);
}

static void an_address_is_looked_up_most_specific_first(void **state)
{
	(void)state;
	static const char *const wanted[] = {"u.v@a.b.test", "a.b.test", ".b.test", ".test", "*"};
	char room[100];
	const char *key[TABLES_KEYS_MAX];
	int n = tables_keys("U.V@a.b.test", room, sizeof room, key);
	assert_int_equal(n, 5);
	for (int i = 0; i < n; i++)
		assert_string_equal(key[i], wanted[i]);
	assert_int_equal(tables_keys("", room, sizeof room, key), 2);
	assert_string_equal(key[0], "<>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_route_is_a_transport_relays_an_error_or_the_end),
		cmocka_unit_test(what_is_no_route_is_found),
		cmocka_unit_test(access_is_a_word_or_a_code),
		cmocka_unit_test(what_is_no_access_is_found),
		cmocka_unit_test(a_row_of_keys_has_a_selector_and_a_file_each),
		cmocka_unit_test(rows_for_what_is_no_domain_are_none),
		cmocka_unit_test(an_address_is_looked_up_most_specific_first),
	};
	return RUN(tests);
}
