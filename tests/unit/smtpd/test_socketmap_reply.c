/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "base/address.h"
#include "base/mem.h"
#include "base/socketmap_name.h"
#include "smtpd/socketmap_reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum socketmap_said said(const char *bytes, char text[100])
{
	struct socketmap_reply r = {0};
	/* No NUL behind it: what lies there is not read. */
	char *exact = mem_alloc(strlen(bytes) + 1);
	memcpy(exact, bytes, strlen(bytes));
	exact[strlen(bytes)] = 'X';
	enum socketmap_said what = socketmap_reply_read(exact, strlen(bytes), &r);
	if (what >= SOCKETMAP_REPLY_OK)
		snprintf(text, 100, "%.*s", (int)r.len, r.text);
	free(exact);
	return what;
}

static void each_word_means_what_it_says(void **state)
{
	char text[100];
	(void)state;
	assert_int_equal(said("9:OK reject,", text), SOCKETMAP_REPLY_OK);
	assert_string_equal(text, "reject");
	assert_int_equal(said("3:OK ,", text), SOCKETMAP_REPLY_OK);
	assert_string_equal(text, "");
	assert_int_equal(said("9:NOTFOUND ,", text), SOCKETMAP_REPLY_NOT_FOUND);
	assert_int_equal(said("8:NOTFOUND,", text), SOCKETMAP_REPLY_NOT_FOUND);
	assert_int_equal(said("10:TEMP later,", text), SOCKETMAP_REPLY_FAILED);
	assert_string_equal(text, "TEMP later");
	assert_int_equal(said("4:PERM,", text), SOCKETMAP_REPLY_FAILED);
	assert_int_equal(said("12:TIMEOUT slow,", text), SOCKETMAP_REPLY_FAILED);
}

static void a_reply_may_come_byte_by_byte(void **state)
{
	static const char whole[] = "12:OK \xc3\xa4, b c,:,";
	char text[100], part[20];
	(void)state;
	for (size_t n = 0; n < strlen(whole); n++) {
		snprintf(part, sizeof part, "%.*s", (int)n, whole);
		assert_int_equal(said(part, text), SOCKETMAP_REPLY_PART);
	}
	assert_int_equal(said(whole, text), SOCKETMAP_REPLY_OK);
	assert_string_equal(text, "\xc3\xa4, b c,:");
}

static void what_is_no_netstring_and_no_word_is_bad(void **state)
{
	static const char *const bad[] = {
		"x",	    ":",	"-1:",		"03:OK ,", "+3:OK ,", "1234567",
		"999999:",  "100001:",	" 3:OK ,",	"3:OK .",  "0:,",     "2:OK,",
		"5:ok no,", "5:OKno!,", "9:NOTFOUNDx,", "3:WHO,"};
	char text[100];
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(said(bad[i], text), SOCKETMAP_REPLY_BAD);
	struct socketmap_reply r;
	assert_int_equal(socketmap_reply_read("5:OK a\0,", 8, &r), SOCKETMAP_REPLY_BAD);
	assert_int_equal(socketmap_reply_read("6:OK a\0b,", 9, &r), SOCKETMAP_REPLY_BAD);
}

static void what_follows_is_left(void **state)
{
	struct socketmap_reply r;
	(void)state;
	assert_int_equal(socketmap_reply_read("4:OK a,4:OK b,", 14, &r), SOCKETMAP_REPLY_OK);
	assert_int_equal(r.used, 7);
}

static void a_question_is_a_netstring(void **state)
{
	struct buf to = {0};
	(void)state;
	socketmap_reply_ask(&to, "senders", "a@b.test");
	assert_string_equal(buf_cstr(&to), "16:senders a@b.test,");
	buf_fini(&to);
}

static void a_table_names_its_server(void **state)
{
	static const char *const bad[] = {"socketmap:",
					  "socketmap:unix:/a",
					  "socketmap:unix:a:b",
					  "socketmap:unix:/a:",
					  "socketmap:inet:192.0.2.1:m",
					  "socketmap:inet:192.0.2.1:0:m",
					  "socketmap:inet:example.org:1:m",
					  "socketmap:tcp:192.0.2.1:9:m",
					  "socketmap:unix:/a:b c",
					  "socketmap:inet:2001:db8::1:9:m"};
	struct socketmap_name n;
	struct buf why = {0};
	(void)state;
	assert_true(socketmap_name_parse("socketmap:unix:/run/map:senders", &n, &why));
	assert_string_equal(n.name, "senders");
	assert_int_equal(n.server_len, strlen("unix:/run/map"));
	assert_true(address_is_unix(&n.to));
	assert_true(socketmap_name_parse("socketmap:inet:[2001:db8::1]:9000:m", &n, &why));
	assert_int_equal(address_port(&n.to), 9000);
	assert_false(socketmap_name_is("/etc/sluice/socketmap:x"));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_false(socketmap_name_parse(bad[i], &n, &why));
	assert_true(buf_len(&why) > 0);
	buf_fini(&why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_word_means_what_it_says),
		cmocka_unit_test(a_reply_may_come_byte_by_byte),
		cmocka_unit_test(what_is_no_netstring_and_no_word_is_bad),
		cmocka_unit_test(what_follows_is_left),
		cmocka_unit_test(a_question_is_a_netstring),
		cmocka_unit_test(a_table_names_its_server),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
