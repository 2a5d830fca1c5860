/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/users.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* RFC 7677 3: user "user", password "pencil". */
static const char from_the_rfc[] =
	"SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
	"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=";

static void the_example_of_the_rfc_holds(void **state)
{
	struct user_value v;
	struct buf why = {0}, text = {0};
	(void)state;
	assert_null(user_value_parse(from_the_rfc, &v, &why));
	assert_true(user_value_check(&v, "pencil"));
	assert_false(user_value_check(&v, "pencils"));
	assert_false(user_value_check(&v, ""));
	user_value_print(&v, &text);
	assert_string_equal(buf_cstr(&text), from_the_rfc);
	user_value_fini(&v);
	buf_fini(&text);
}

static void what_is_made_can_be_written_read_and_checked(void **state)
{
	(void)state;
	for (int form = 0; form < 3; form++) {
		struct user_value made = {.crypt = NULL}, v;
		struct buf why = {0}, text = {0};
		if (form == 2)
			assert_true(user_value_make_crypt(&made, "secret"));
		else
			assert_true(user_value_make_scram(&made, (enum user_hash)form, "secret",
							  USER_ITERATIONS_MIN));
		user_value_print(&made, &text);
		assert_null(strstr(buf_cstr(&text), "secret"));
		assert_null(user_value_parse(buf_cstr(&text), &v, &why));
		assert_true(user_value_check(&v, "secret"));
		assert_false(user_value_check(&v, "Secret"));
		user_value_fini(&v);
		user_value_fini(&made);
		buf_wipe(&text);
	}
}

static void a_password_in_the_file_is_a_fault_that_does_not_say_it(void **state)
{
	static const char *const bad[] = {
		"hunter2",
		"SCRAM-SHA-256$1:AAAA$AAAA:AAAA",
		"SCRAM-SHA-256$4096:$A:A",
		"$",
		"key$AAAA",
		"$y$j9T$hunter2 $y$j9T$again",
		"SCRAM-SHA-512$4096:AAAA$AAAA:AAAA",
		"",
	};
	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct user_value v;
		struct buf why = {0};
		assert_non_null(user_value_parse(bad[i], &v, &why));
		assert_null(strstr(buf_cstr(&why), "hunter2"));
		user_value_fini(&v);
		buf_fini(&why);
	}
}

static void odd_logins_are_refused(void **state)
{
	static const char *const odd[] = {"",	   "a b",  "a\tb",     "a\"b", "a\\b",	"#a",
					  "a:b",   "@a",   "-a",       "*",    "a\x01", "a\xff",
					  "a\x7f", "a(b)", "\xc2\xad", ".a"};
	char login[USERS_LOGIN_MAX + 1], longest[USERS_LOGIN_MAX + 2];
	struct buf why = {0};
	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		buf_clear(&why);
		assert_false(users_login(odd[i], login, &why));
		assert_true(buf_len(&why) > 0);
	}
	memset(longest, 'a', sizeof longest);
	longest[sizeof longest - 1] = '\0';
	assert_false(users_login(longest, login, NULL));
	longest[USERS_LOGIN_MAX] = '\0';
	assert_true(users_login(longest, login, NULL));
	assert_true(users_login("Anna+x@Example.ORG", login, NULL));
	assert_string_equal(login, "anna+x@example.org");
	assert_true(users_login("J\xc3\xb6rg", login, NULL));
	assert_true(
		users_login("J\x6f\xcc\x88rg", login, NULL)); /* decomposed: the same to SASLprep */
	assert_string_equal(login, "j\xc3\xb6rg");
	buf_fini(&why);
}

static char path[] = "/tmp/sluice-users-XXXXXX";

static struct conf *with_users(const char *rows)
{
	char text[200];
	struct buf errors = {0};
	int fd = mkstemp(strcpy(path, "/tmp/sluice-users-XXXXXX"));
	assert_int_equal(write(fd, rows, strlen(rows)), strlen(rows));
	close(fd);
	int n = snprintf(text, sizeof text,
			 "auth { file = \"%s\" }\nlistener \"a\" { auth = true }\n", path);
	char conf_path[] = "/tmp/sluice-users-conf-XXXXXX";
	fd = mkstemp(conf_path);
	assert_int_equal(write(fd, text, (size_t)n), n);
	close(fd);
	struct conf *c = conf_read(conf_path, &errors);
	unlink(conf_path);
	unlink(path);
	assert_string_equal(buf_cstr(&errors), "");
	buf_fini(&errors);
	return c;
}

static void who_is_not_there_looks_like_somebody(void **state)
{
	char rows[400];
	struct user_value v;
	struct user_scram real, one, again, other;
	(void)state;
	snprintf(rows, sizeof rows, "* key$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\nuser %s\n",
		 from_the_rfc);
	struct conf *c = with_users(rows);
	assert_true(users_find(c->tables, "user", &v));
	assert_true(user_value_check(&v, "pencil"));
	user_value_fini(&v);
	assert_false(users_find(c->tables, "*x", &v));
	assert_int_equal(v.scram[USER_SHA256].iterations, 4096);
	user_value_fini(&v);
	assert_true(users_scram(c->tables, "user", USER_SHA256, &real));
	assert_false(users_scram(c->tables, "nobody", USER_SHA256, &one));
	assert_false(users_scram(c->tables, "nobody", USER_SHA256, &again));
	assert_false(users_scram(c->tables, "noone", USER_SHA256, &other));
	assert_memory_equal(&one, &again, sizeof one);
	assert_memory_not_equal(one.salt, other.salt, USER_SALT);
	assert_int_equal(one.salt_bytes, real.salt_bytes);
	assert_int_equal(one.iterations, real.iterations);
	conf_unref(c);
}

static void a_file_without_rows_knows_nobody(void **state)
{
	struct user_value v;
	struct user_scram s;
	(void)state;
	struct conf *c = with_users("# nobody yet\n");
	assert_false(users_find(c->tables, "user", &v));
	assert_false(user_value_check(&v, "pencil"));
	user_value_fini(&v);
	assert_false(users_scram(c->tables, "user", USER_SHA1, &s));
	assert_int_equal(s.iterations, USER_ITERATIONS);
	conf_unref(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_of_the_rfc_holds),
		cmocka_unit_test(what_is_made_can_be_written_read_and_checked),
		cmocka_unit_test(a_password_in_the_file_is_a_fault_that_does_not_say_it),
		cmocka_unit_test(odd_logins_are_refused),
		cmocka_unit_test(who_is_not_there_looks_like_somebody),
		cmocka_unit_test(a_file_without_rows_knows_nobody),
	};
	return RUN(tests);
}
