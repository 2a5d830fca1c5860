/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "tlsrpt/tlsrpt_record.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 3 };

/* expected: the recipients, with a blank between. */
static void is(const char *txt, const char *expected)
{
	struct tlsrpt_target to[MOST];
	char found[500] = "";
	int n = tlsrpt_record_parse(txt, to, MOST);
	for (int i = 0; i < n; i++) {
		strcat(found, i ? " " : "");
		strcat(found, to[i].to);
		assert_int_equal(to[i].https, strncmp(to[i].to, "https:", 6) == 0);
		free(to[i].to);
	}
	assert_string_equal(found, expected);
}

static void a_record_names_mail_addresses_and_urls(void **state)
{
	(void)state;
	is("v=TLSRPTv1; rua=mailto:tls@a.test", "tls@a.test");
	is("v=TLSRPTv1;rua=https://a.test:8443/,https://b.test:/,https://c.test:0/,https://"
	   "d.test:65536/,"
	   "https://e.test:1x/",
	   "https://a.test:8443/");
	is("v=TLSRPTv1;rua=mailto:tls@A.test,https://a.test/x?y=1 ;",
	   "tls@a.test https://a.test/x?y=1");
	is("v=TLSRPTv1; x=y; rua = mailto:a@a.test , mailto:b@a.test", "a@a.test b@a.test");
	is("v=TLSRPTv1; rua=mailto:a%2Bb@a.test?subject=x", "a+b@a.test");
	is("v=TLSRPTv1; rua=MAILTO:a@a.test", "a@a.test");
}

static void what_can_not_be_used_is_left_out(void **state)
{
	(void)state;
	is("", "");
	is("v=TLSRPTv1", "");
	is("v=TLSRPTv2; rua=mailto:a@a.test", "");
	is("v=TLSRPTv1; rua=", "");
	is("v=TLSRPTv1; rua=mailto:,mailto:nobody,mailto:a%0d%0aBcc@a.test", "");
	is("v=TLSRPTv1; rua=http://a.test/,ftp://a.test/,https://,https://u@a.test/,https://[::1]/",
	   "");
	is("v=TLSRPTv1; rua=mailto:a@a.test,mailto:a@a.test", "a@a.test");
	is("v=TLSRPTv1; ruax=mailto:a@a.test", "");
}

static void recipients_are_bounded(void **state)
{
	(void)state;
	is("v=TLSRPTv1; rua=mailto:a@a.test,mailto:b@a.test,mailto:c@a.test,mailto:d@a.test",
	   "a@a.test b@a.test c@a.test");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_names_mail_addresses_and_urls),
		cmocka_unit_test(what_can_not_be_used_is_left_out),
		cmocka_unit_test(recipients_are_bounded),
	};
	return RUN(tests);
}
