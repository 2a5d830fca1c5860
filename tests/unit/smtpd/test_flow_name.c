/* SPDX-License-Identifier: ISC */
#include "unit.h"

#include "base/address.h"
#include "base/conf.h"
#include "base/envelope.h"
#include "base/log.h"
#include "base/mem.h"
#include "smtpd/flow_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct conf *conf;

static void write_to(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static const char *read_conf(const char *rows)
{
	static char said[500];
	char folder[] = "/tmp/test_flow_name.XXXXXX", text[200];
	struct buf errors = {0};
	assert_non_null(mkdtemp(folder));
	char *table = mem_printf("%s/flows", folder), *file = mem_printf("%s/conf", folder);
	write_to(table, rows);
	snprintf(text, sizeof text, "flow_header = \"X-Tenant\"\nflows = {\"%s\"}\n", table);
	write_to(file, text);
	conf = conf_read(file, &errors);
	snprintf(said, sizeof said, "%s", buf_len(&errors) ? buf_cstr(&errors) : "");
	buf_fini(&errors);
	unlink(table);
	unlink(file);
	rmdir(folder);
	free(table);
	free(file);
	log_set_level(LOG_LEVEL_ERROR);
	return said;
}

static int forget_conf(void **state)
{
	(void)state;
	conf_unref(conf);
	conf = NULL;
	return 0;
}

static void is_of(const char *flow, const char *named, const char *login, const char *sender,
		  const char *client)
{
	union address a;
	assert_true(address_parse(client, 25, &a));
	const struct flow_facts facts = {
		.id = 1, .named = named, .login = login, .sender = sender, .client = &a};
	char *name = flow_name(conf, &facts);
	assert_string_equal(name, flow);
	free(name);
}

static const char *const rows = "login:ann news\n"
				"boss@a.test boss\n"
				".b.test b-all\n"
				"192.0.2.0/24 office\n"
				"192.0.2.7 printer\n"
				"2001:db8::/32 six\n";

static void the_first_that_there_is_names_it(void **state)
{
	(void)state;
	assert_string_equal(read_conf(rows), "");
	is_of("red", "red", "ann", "boss@a.test", "192.0.2.7");
	is_of("news", NULL, "ann", "boss@a.test", "192.0.2.7");
	is_of("news", NULL, "Ann", "boss@a.test", "192.0.2.7");
	is_of("boss", NULL, "bert", "boss@a.test", "192.0.2.7");
	is_of("b-all", NULL, NULL, "x@c.b.test", "192.0.2.7");
	is_of("printer", NULL, "bert", "x@a.test", "192.0.2.7");
	is_of("office", NULL, "bert", "x@a.test", "192.0.2.8");
	is_of("office", NULL, NULL, "", "::ffff:192.0.2.8");
	is_of("six", NULL, NULL, "x@a.test", "2001:db8:1::1");
	is_of("bert", NULL, "bert", "x@a.test", "198.51.100.1");
	is_of("a.test", NULL, NULL, "x@A.Test", "198.51.100.1");
	is_of("<>", NULL, NULL, "", "198.51.100.1");
}

static void what_is_no_name_is_as_if_it_were_not_there(void **state)
{
	(void)state;
	char name[ENVELOPE_FLOW_MAX + 2];
	assert_string_equal(read_conf(rows), "");
	is_of("a.test", "", NULL, "x@a.test", "198.51.100.1");
	is_of("a.test", "two words", NULL, "x@a.test", "198.51.100.1");
	is_of("a.test", "<reports>", NULL, "x@a.test", "198.51.100.1");
	is_of("a.test", "n\xc3\xa4", NULL, "x@a.test", "198.51.100.1");
	is_of("a-Z.0_9", "a-Z.0_9", NULL, "x@a.test", "198.51.100.1");
	memset(name, 'x', sizeof name);
	name[ENVELOPE_FLOW_MAX + 1] = '\0';
	is_of("a.test", name, NULL, "x@a.test", "198.51.100.1");
	name[ENVELOPE_FLOW_MAX] = '\0';
	is_of(name, name, NULL, "x@a.test", "198.51.100.1");
}

static void faults_in_a_table_are_named(void **state)
{
	(void)state;
	assert_non_null(strstr(read_conf("192.0.2.1/32 office\n"), "is to be written 192.0.2.1"));
	assert_non_null(strstr(read_conf("192.0.2.1/24 office\n"), "not login:NAME"));
	assert_non_null(
		strstr(read_conf("2001:db8:0::/32 six\n"), "is to be written 2001:db8::/32"));
	assert_non_null(strstr(read_conf("a.test two words\n"), "not the name of a flow"));
	assert_non_null(strstr(read_conf("a@b@c@ x\n"), "not login:NAME"));
	assert_null(conf);
}

#define TEST(name) cmocka_unit_test_teardown(name, forget_conf)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_that_there_is_names_it),
		TEST(what_is_no_name_is_as_if_it_were_not_there),
		TEST(faults_in_a_table_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
