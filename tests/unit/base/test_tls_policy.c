/* SPDX-License-Identifier: ISC */
#include "base/tls_policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FINGERPRINT "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void good(const char *text, bool is)
{
	struct buf why = {0};
	assert_int_equal(tls_policy_good(text, &why), is);
	assert_int_equal(buf_len(&why) == 0, is);
	buf_fini(&why);
}

static void policies_are_words_and_items(void **state)
{
	(void)state;
	good("none", true);
	good("opportunistic", true);
	good("required", true);
	good("verify", true);
	good("verify:nexthop,dot-nexthop,hostname", true);
	good("verify:mx.a.test,.b.test,192.0.2.1,2001:db8::1", true);
	good("verify:sha256=" FINGERPRINT, true);
	good("", false);
	good("Required", false);
	good("required:a.test", false);
	good("verify:", false);
	good("verify:a.test,", false);
	good("verify:a test", false);
	good("verify:*.a.test", false);
	good("verify:sha256=0011", false);
	good("dane", true);
	good("dane-only", true);
	good("dane:a.test", false);
	good("dane-only:a.test", false);
}

static void of_hop(const char *text, const char *hop, const char *expected)
{
	char *is = tls_policy_of_hop(text, hop);
	assert_string_equal(is, expected);
	free(is);
}

static void words_become_names(void **state)
{
	(void)state;
	of_hop("required", "a.test", "required");
	of_hop("verify", "a.test", "verify:a.test,.a.test");
	of_hop("verify", "192.0.2.1", "verify:192.0.2.1");
	of_hop("verify:NextHop,X.test", "A.test", "verify:a.test,x.test");
	of_hop("verify:hostname", "a.test", "verify:hostname");
	of_hop("verify:nexthop", NULL, "verify:nexthop");
	of_hop("verify:SHA256=00:11" FINGERPRINT, "a.test", "verify:sha256=0011" FINGERPRINT);
	char *host = tls_policy_of_host("verify:hostname,a.test", "MX.test");
	assert_string_equal(host, "verify:mx.test,a.test");
	free(host);
}

static void the_strictest_holds_and_else_the_nearest(void **state)
{
	(void)state;
	assert_string_equal(tls_policy_strictest("opportunistic", "none"), "none");
	assert_string_equal(tls_policy_strictest("none", "opportunistic"), "opportunistic");
	assert_string_equal(tls_policy_strictest("required", "none"), "required");
	assert_string_equal(tls_policy_strictest("required", "opportunistic"), "required");
	assert_string_equal(tls_policy_strictest("verify", "required"), "verify");
	assert_string_equal(tls_policy_strictest("none", "verify"), "verify");
	assert_string_equal(tls_policy_strictest("verify", "verify:a.test"), "verify:a.test");
	assert_string_equal(tls_policy_strictest("dane", "opportunistic"), "dane");
	assert_string_equal(tls_policy_strictest("none", "dane"), "dane");
	assert_string_equal(tls_policy_strictest("required", "dane"), "required");
	assert_string_equal(tls_policy_strictest("required", "dane-only"), "dane-only");
	assert_string_equal(tls_policy_strictest("dane-only", "verify"), "verify");
	assert_string_equal(tls_policy_strictest("verify", "dane-only"), "dane-only");
	assert_string_equal(tls_policy_strictest(NULL, "none"), "none");
	assert_string_equal(tls_policy_strictest("required", NULL), "required");
	assert_null(tls_policy_strictest(NULL, NULL));
}

static void dane_is_for_those_who_did_not_say_otherwise(void **state)
{
	(void)state;
	assert_int_equal(tls_policy_dane("opportunistic", true), TLS_DANE_WANTED);
	assert_int_equal(tls_policy_dane("opportunistic", false), TLS_DANE_IGNORED);
	assert_int_equal(tls_policy_dane("required", true), TLS_DANE_WANTED);
	assert_int_equal(tls_policy_dane("dane", false), TLS_DANE_WANTED);
	assert_int_equal(tls_policy_dane("dane-only", false), TLS_DANE_DEMANDED);
	assert_int_equal(tls_policy_dane("verify", true), TLS_DANE_IGNORED);
	assert_int_equal(tls_policy_dane("none", true), TLS_DANE_IGNORED);
	char *host = tls_policy_of_host("dane", "mx.test");
	assert_string_equal(host, "opportunistic");
	free(host);
}

static void with_requiretls(const char *text, const char *expected)
{
	char *is = tls_policy_with_requiretls(text, "mx.test");
	assert_string_equal(is, expected);
	assert_true(tls_policy_has_requiretls(is));
	assert_false(tls_policy_has_requiretls(text));
	free(is);
}

static void requiretls_wants_a_proof_where_the_policy_wants_none(void **state)
{
	(void)state;
	with_requiretls("opportunistic", "verify:mx.test,+requiretls");
	with_requiretls("none", "verify:mx.test,+requiretls");
	with_requiretls("verify:a.test,.a.test", "verify:a.test,.a.test,+requiretls");
	with_requiretls("dane:mx.test,tlsa=12", "dane:mx.test,tlsa=12,+requiretls");
}

static void fingerprints_alone_need_no_authority(void **state)
{
	(void)state;
	assert_false(tls_policy_trusts("required"));
	assert_true(tls_policy_trusts("verify"));
	assert_true(tls_policy_trusts("verify:a.test,sha256=" FINGERPRINT));
	assert_false(tls_policy_trusts("verify:sha256=" FINGERPRINT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(policies_are_words_and_items),
		cmocka_unit_test(words_become_names),
		cmocka_unit_test(the_strictest_holds_and_else_the_nearest),
		cmocka_unit_test(dane_is_for_those_who_did_not_say_otherwise),
		cmocka_unit_test(requiretls_wants_a_proof_where_the_policy_wants_none),
		cmocka_unit_test(fingerprints_alone_need_no_authority),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
