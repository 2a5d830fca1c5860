/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/credential.h"
#include "base/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/test_credential.XXXXXX";

/* The settings with a table of these rows, or NULL and the faults. */
static struct conf *with_rows(const char *rows, struct buf *errors)
{
	char table[100], file[100];
	snprintf(table, sizeof table, "%s/credentials", folder);
	snprintf(file, sizeof file, "%s/conf", folder);
	FILE *f = fopen(table, "w");
	fputs(rows, f);
	fclose(f);
	f = fopen(file, "w");
	fprintf(f, "credentials = { \"%s\" }\n", table);
	fclose(f);
	struct conf *c = conf_read(file, errors);
	unlink(table);
	unlink(file);
	return c;
}

static void assert_login(const struct conf *c, const char *hop, const char *sender,
			 const char *expected)
{
	struct credential *found = credential_find(c->tables, hop, sender);
	if (expected)
		assert_non_null(found);
	assert_string_equal(found ? found->login : "nobody", expected ? expected : "nobody");
	credential_unref(found);
}

static void an_ipv6_address_is_one_next_hop_in_each_spelling(void **state)
{
	static const char *const rows[] = {"2001:DB8:0::1", "[2001:db8::1]", "[IPv6:2001:DB8::1]",
					   "[2001:DB8:0::1]:587"};
	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct buf errors = {0};
		char text[200];
		snprintf(text, sizeof text, "%s six password:/s\n", rows[i]);
		struct conf *c = with_rows(text, &errors);
		assert_non_null(c);
		assert_login(c, "[2001:db8::1]:587", "x@y.test", "six");
		assert_login(c, "[IPv6:2001:DB8:0::1]:587=3", "x@y.test", "six");
		conf_unref(c);
	}
}

static void the_sender_counts_first_then_how_the_next_hop_is_written(void **state)
{
	struct buf errors = {0};
	(void)state;
	struct conf *c = with_rows("[Host.test]:587 by-port password:/s\n"
				   "[host.test] by-host password:/s\n"
				   "host.test bare password:/s\n"
				   "host.test  example.org\tdomain token:/s clear\n"
				   "host.test .example.org parent refresh:/s\n"
				   "[host.test]:587 ann@example.org ann password:/s\n"
				   "unix:/run/LMTP local password:/s\n"
				   "dest.test <> null password:/s\n"
				   "[10.0.0.6] own password:/s unauthenticated\n",
				   &errors);
	assert_non_null(c);
	assert_login(c, "[host.test]:587", "x@y.test", "by-port");
	assert_login(c, "[host.test]:587=3", "x@y.test", "by-port");
	assert_login(c, "[HOST.test]:25", "x@y.test", "by-host");
	assert_login(c, "host.test:587", "x@y.test", "bare");
	assert_login(c, "[host.test]:587", "Ann@Example.org", "ann");
	assert_login(c, "[host.test]:25", "ann@example.org", "domain");
	assert_login(c, "[host.test]:587", "ann@a.example.org", "parent");
	assert_login(c, "unix:/run/LMTP", "", "local");
	assert_login(c, "dest.test", "", "null");
	assert_login(c, "dest.test", "a@b.test", NULL);
	assert_login(c, "other.test", "a@b.test", NULL);
	struct credential *found = credential_find(c->tables, "host.test", "a@example.org");
	assert_true(found->clear && found->of_sender && found->kind == CREDENTIAL_TOKEN);
	assert_string_equal(found->file, "/s");
	assert_string_equal(found->hop, "host.test");
	assert_true(found->unproven);
	credential_unref(found);
	found = credential_find(c->tables, "[Host.test]:587=2", "x@y.test");
	assert_string_equal(found->hop, "host.test");
	assert_true(!found->unproven && !found->clear);
	credential_unref(found);
	found = credential_find(c->tables, "[10.0.0.6]:587", "x@y.test");
	assert_string_equal(found->hop, "10.0.0.6");
	assert_true(found->unproven && !found->clear);
	credential_unref(found);
	conf_unref(c);
}

static void a_next_hop_is_found_in_each_spelling(void **state)
{
	struct buf errors = {0};
	(void)state;
	struct conf *c = with_rows("[IPv6:2001:DB8:0::1]:0587 six password:/s\n"
				   "[2001:db8::2] a.test sender password:/s\n"
				   "host.test.:587 dotted password:/s\n",
				   &errors);
	assert_non_null(c);
	assert_login(c, "[IPv6:2001:DB8:0::1]:0587", "x@y.test", "six");
	assert_login(c, "[2001:db8::1]:587=2", "x@y.test", "six");
	assert_login(c, "[2001:db8::1]:25", "x@y.test", NULL);
	assert_login(c, "[IPv6:2001:db8:0:0::2]:25", "x@a.test", "sender");
	assert_login(c, "host.test:587", "x@y.test", "dotted");
	conf_unref(c);
}

static void what_is_no_row_is_a_fault_with_its_line(void **state)
{
	static const char *const rows[] = {
		"host.test ann\n",
		"host.test ann password:relative\n",
		"host.test ann secret:/s\n",
		"host.test ann password:/s plain\n",
		"host.test ann password:/s unauthenticated clear\n",
		"host.test ann password:/s clear more\n",
		"host.test a b c password:/s\n",
		"[host.test ann password:/s\n",
		"host.test=3 ann password:/s\n",
		"host.test ann@ ann password:/s\n",
		"a.test x password:/s\na.test y password:/s\n",
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf errors = {0};
		assert_null(with_rows(rows[i], &errors));
		assert_non_null(strstr(buf_cstr(&errors), "/credentials:"));
		buf_fini(&errors);
	}
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ipv6_address_is_one_next_hop_in_each_spelling),
		cmocka_unit_test(the_sender_counts_first_then_how_the_next_hop_is_written),
		cmocka_unit_test(a_next_hop_is_found_in_each_spelling),
		cmocka_unit_test(what_is_no_row_is_a_fault_with_its_line),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
