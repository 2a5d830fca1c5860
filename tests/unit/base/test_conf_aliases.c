/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/conf.h"
#include "base/mem.h"
#include "base/tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char conf_path[64], alias_path[64];
static struct buf errors;

static struct conf *read_with(const char *conf, const char *aliases)
{
	char *text = mem_printf("aliases = { \"%s\" }\n%s", alias_path, conf);
	FILE *f = fopen(conf_path, "w");
	fputs(text, f);
	fclose(f);
	free(text);
	f = fopen(alias_path, "w");
	fputs(aliases, f);
	fclose(f);
	buf_clear(&errors);
	struct conf *c = conf_read(conf_path, &errors);
	unlink(conf_path);
	unlink(alias_path);
	return c;
}

static void wrong(const char *aliases, int line, const char *phrase)
{
	assert_null(read_with("", aliases));
	char *where = mem_printf("%s:%d: ", alias_path, line);
	char *said = strstr(buf_cstr(&errors), where);
	if (!said || !strstr(said, phrase))
		fail_msg("expected %s... %s ...\nsaid     %s", where, phrase, buf_cstr(&errors));
	free(where);
}

/* The members, without the blanks between them. */
static void stands_for(const struct conf *c, const char *alias, const char *members)
{
	struct table_origin origin;
	char *value = tables_get(c->tables, TABLE_ALIASES, alias, &origin), *to = value;
	assert_non_null(value);
	for (const char *from = value; (*to = *from); from++)
		to += *to != ' ' && *to != '\t';
	assert_string_equal(value, members);
	free(value);
}

static void aliases_of_sections_and_files_are_found_in_lower_case(void **state)
{
	(void)state;
	struct conf *c =
		read_with("alias \"List@Example.org\" { to = { \"a@b.c\", \"d@e.f\" } }\n",
			  "# comment\n\nPostmaster: x@y.z\n"
			  "\"odd:one\"@example.org: p@q.r,\n\ts@t.u,\n  v@w.x # no comment\n");
	assert_null(c); /* "v@w.x # no comment" */
	c = read_with("alias \"List@Example.org\" { to = { \"a@b.c\", \"d@e.f\" } }\n",
		      "# comment\n\nPostmaster: x@y.z\n"
		      "\"odd:one\"@example.org: p@q.r,\n\ts@t.u,\n# between\n  v@w.x\n");
	assert_non_null(c);
	assert_int_equal(c->nalias, 1);
	assert_int_equal(conf_alias_find(c, "list@example.org")->to.n, 2);
	stands_for(c, "postmaster", "x@y.z");
	stands_for(c, "\"odd:one\"@example.org", "p@q.r,s@t.u,v@w.x");
	assert_null(tables_get(c->tables, TABLE_ALIASES, "nobody@example.org", NULL));
	conf_unref(c);
}

static void faults_of_a_file_of_aliases_have_its_name_and_line(void **state)
{
	(void)state;
	wrong("a@b.c: d@e.f\nnonsense\n", 2, "must be \"address: address, address\"");
	wrong("\n\na@b.c:\n\nd@e.f: g@h.i\n", 3, "stands for nothing");
	wrong("  a@b.c\n", 1, "never begun");
	wrong("a@b.c: d@e.f,\n nobody\n", 2, "\"nobody\" is not an address");
	wrong("a@b.c: d@e.f\nx@y.z: d@e.f\nA@b.c: g@h.i\n", 3, "already there, at");
	wrong("root: d@e.f\n", 1, "\"root\" is not an address");
}

static void an_alias_of_a_section_is_checked_as_well(void **state)
{
	(void)state;
	assert_null(read_with("alias \"a@b.c\" { }\n", ""));
	assert_non_null(strstr(buf_cstr(&errors), ":2: alias \"a@b.c\" stands for nothing"));
	assert_null(read_with("alias \"a@b.c\" { to = { \"d@e.f\",\n\"x\" } }\n", ""));
	assert_non_null(strstr(buf_cstr(&errors), ":3: \"x\" is not an address"));
	assert_null(read_with("alias \"a@b.c\" { to = { \"d@e.f\" } }\n", "a@b.c: g@h.i\n"));
	assert_non_null(strstr(buf_cstr(&errors), "already there, at"));
}

static void a_hundred_thousand_aliases_are_read_soon(void **state)
{
	(void)state;
	struct buf text = {0};
	for (int i = 0; i < 100000; i++)
		buf_printf(&text, "u%d@example.org: v%d@example.net\n", i, i);
	struct conf *c = read_with("", buf_cstr(&text));
	assert_non_null(c);
	stands_for(c, "u77777@example.org", "v77777@example.net");
	conf_unref(c);
	buf_fini(&text);
}

static void a_relay_is_a_host_and_perhaps_a_port(void **state)
{
	(void)state;
	static const struct {
		const char *text, *host;
		int port;
		bool bracketed;
	} good[] = {
		{"MX.example.com", "mx.example.com", 0, false},
		{"mx:587", "mx", 587, false},
		{"[mx.corp.test]", "mx.corp.test", 0, true},
		{"[mx.corp.test]:2525", "mx.corp.test", 2525, true},
		{"[10.0.0.5]:25", "10.0.0.5", 25, true},
		{"10.0.0.5:25", "10.0.0.5", 25, true},
		{"[IPv6:2001:db8::1]:26", "2001:db8::1", 26, true},
		{"[::1]:25", "::1", 25, true},
		{"[::1]", "::1", 0, true},
	};
	static const char *const bad[] = {
		"",    "[]",  "[a",  "a]", "[a]25", "a:",	 "a:0",	    "a:65536", "a:b",
		"a b", "::1", "a=3", "-a", "a..b",  "user@host", "[a]:25x", "a:+25"};
	char *host;
	int port;
	bool bracketed;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		assert_true(conf_relay_parse(good[i].text, &host, &port, &bracketed));
		assert_string_equal(host, good[i].host);
		assert_int_equal(port, good[i].port);
		assert_int_equal(bracketed, good[i].bracketed);
		free(host);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_false(conf_relay_parse(bad[i], &host, &port, &bracketed));
		assert_null(host);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(aliases_of_sections_and_files_are_found_in_lower_case),
		cmocka_unit_test(faults_of_a_file_of_aliases_have_its_name_and_line),
		cmocka_unit_test(an_alias_of_a_section_is_checked_as_well),
		cmocka_unit_test(a_hundred_thousand_aliases_are_read_soon),
		cmocka_unit_test(a_relay_is_a_host_and_perhaps_a_port),
	};
	snprintf(conf_path, sizeof conf_path, "/tmp/test_conf_aliases.%d", (int)getpid());
	snprintf(alias_path, sizeof alias_path, "/tmp/test_conf_aliases.%d.text", (int)getpid());
	int failed = RUN(tests);
	buf_fini(&errors);
	return failed;
}
