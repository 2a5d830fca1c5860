/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/conf.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char conf_path[64], own_path[64];
static struct buf errors;

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
}

/* own: the file of providers; NULL: it is named, and not there. */
static struct conf *read_both(const char *conf, const char *own)
{
	char *text = mem_printf("providers = { \"%s\" }\n%s", own_path, conf);
	write_file(conf_path, text);
	free(text);
	if (own)
		write_file(own_path, own);
	buf_clear(&errors);
	struct conf *c = conf_read(conf_path, &errors);
	unlink(conf_path);
	unlink(own_path);
	return c;
}

static void wrong(const char *conf, const char *own, const char *path, int line, const char *phrase)
{
	assert_null(read_both(conf, own));
	char *where = mem_printf("%s:%d: ", path, line);
	char *said = strstr(buf_cstr(&errors), where);
	if (!said || !strstr(said, phrase))
		fail_msg("expected %s... %s ...\nsaid     %s", where, phrase, buf_cstr(&errors));
	free(where);
}

static const char *name_of(const struct conf *c, const char *host)
{
	const struct conf_provider *p = conf_provider_find(c, host);
	return p ? p->title : "";
}

static void the_longest_suffix_of_whole_labels_wins(void **state)
{
	(void)state;
	struct conf *c =
		read_both("provider \"big\" { mx = { \".example.com\" } }\n"
			  "provider \"part\" { mx = { \".in.example.com\" } }\n"
			  "provider \"one\" { mx = { \"mx9.in.example.com\", \".test\" } }\n",
			  "");
	assert_non_null(c);
	assert_string_equal(name_of(c, "a.example.com"), "big");
	assert_string_equal(name_of(c, "a.b.example.com"), "big");
	assert_string_equal(name_of(c, "a.in.example.com"), "part");
	assert_string_equal(name_of(c, "in.example.com"), "big");
	assert_string_equal(name_of(c, "mx9.in.example.com"), "one");
	assert_string_equal(name_of(c, "x.mx9.in.example.com"), "part");
	assert_string_equal(name_of(c, "example.com"), "");
	assert_string_equal(name_of(c, "notexample.com"), "");
	assert_string_equal(name_of(c, "a.notexample.com"), "");
	assert_string_equal(name_of(c, "a.example.com.evil.org"), "");
	assert_string_equal(name_of(c, "mx.test"), "one");
	assert_string_equal(name_of(c, "test"), "");
	assert_string_equal(name_of(c, ""), "");
	assert_string_equal(name_of(c, "."), "");
	conf_unref(c);
}

static void names_are_found_however_they_are_written(void **state)
{
	(void)state;
	struct conf *c = read_both("provider \"a\" { mx = { \".B\xc3\xbc"
				   "cher.test.\" } }\n",
				   "");
	assert_non_null(c);
	assert_string_equal(name_of(c, "mx.xn--bcher-kva.test"), "a");
	assert_string_equal(name_of(c, "MX.B\xc3\x9c"
				       "CHER.TEST."),
			    "a");
	assert_string_equal(name_of(c, "mx.bucher.test"), "");
	conf_unref(c);
}

static void a_section_is_laid_over_that_of_a_file(void **state)
{
	(void)state;
	struct conf *c = read_both("provider \"a\" { connection_limit = 7 }\n",
				   "provider \"a\" { mx = { \".a.test\" }  rate = \"5/s\" }\n"
				   "provider \"b\" { mx = { \".b.test\" } }\n");
	assert_non_null(c);
	const struct conf_provider *a = conf_provider_find(c, "mx.a.test");
	assert_int_equal(c->nprovider, 2);
	assert_int_equal(a->connection_limit, 7);
	assert_int_equal(a->rate.events, 5);
	assert_string_equal(name_of(c, "mx.b.test"), "b");
	assert_int_equal(conf_provider_find(c, "mx.b.test")->connection_limit, 0);
	conf_unref(c);
	c = read_both("provider \"a\" { mx = { \".c.test\" } }\n",
		      "provider \"a\" { mx = { \".a.test\" } }\n");
	assert_string_equal(name_of(c, "mx.a.test"), "");
	assert_string_equal(name_of(c, "mx.c.test"), "a");
	conf_unref(c);
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
	(void)state;
	wrong("provider \"a\" {\n mx = { \"x.test\",\n \"*.b.test\" } }\n", "", conf_path, 4,
	      "not the name of a host");
	wrong("provider \"a\" { mx = { \"\" } }\n", "", conf_path, 2, "not the name of a host");
	wrong("provider \"a\" { mx = { \".\" } }\n", "", conf_path, 2, "not the name of a host");
	wrong("provider \"a\" { mx = { \"..b.test\" } }\n", "", conf_path, 2, "not the name");
	wrong("provider \"a\" { mx = { \".b..test\" } }\n", "", conf_path, 2, "not the name");
	wrong("provider \"a\" { mx = { \"u@b.test\" } }\n", "", conf_path, 2, "not the name");
	wrong("provider \"a\" { mx = { } }\n", "", conf_path, 2, "has no mx");
	wrong("provider \"a\" { connection_limit = 3 }\n", "", conf_path, 2, "has no mx");
	wrong("provider \"\" { mx = { \".b.test\" } }\n", "", conf_path, 2, "a name has letters");
	wrong("provider \"a b\" { mx = { \".b.test\" } }\n", "", conf_path, 2,
	      "a name has letters");
	wrong("provider \"a\" { mx = { \".b.test\" }  speed = 3 }\n", "", conf_path, 2, "speed");
}

static void it_has_the_transport_that_it_names(void **state)
{
	(void)state;
	struct conf *c =
		read_both("transport \"slow\" { }\nprovider \"a\" { transport = \"slow\" }\n",
			  "provider \"a\" { mx = { \".a.test\" } }\n"
			  "provider \"b\" { mx = { \".b.test\" } }\n");
	assert_non_null(c);
	assert_string_equal(conf_provider_find(c, "mx.a.test")->by->title, "slow");
	assert_null(conf_provider_find(c, "mx.b.test")->by);
	assert_true(c->providers_carry);
	conf_unref(c);
}

static void a_transport_that_is_not_there_is_said_with_its_place(void **state)
{
	(void)state;
	wrong("provider \"a\" {\n mx = { \".a.test\" }\n transport = \"slow\"\n}\n", "", conf_path,
	      4, "there is no transport \"slow\"");
	wrong("provider \"a\" { rate = \"1/s\" }\n",
	      "provider \"a\" {\n mx = { \".a.test\" }\n transport = \"slow\" }\n", own_path, 3,
	      "there is no transport \"slow\"");
}

static void two_of_one_suffix_are_a_fault(void **state)
{
	(void)state;
	wrong("provider \"a\" { mx = { \".b.test\" } }\nprovider \"c\" { mx = { \".B.test\" } }\n",
	      "", conf_path, 3, "is provider \"a\" already");
	wrong("provider \"a\" { mx = { \".b.test\", \".b.test.\" } }\n", "", conf_path, 2,
	      "is provider \"a\" already");
	wrong("provider \"a\" { mx = { \".b.test\" } }\nprovider \"a\" { mx = { \".c.test\" } }\n",
	      "", conf_path, 3, "already there");
	wrong("",
	      "provider \"a\" { mx = { \".b.test\" } }\n\nprovider \"c\" { mx = { \".b.test\" } "
	      "}\n",
	      own_path, 3, "is provider \"a\" already");
}

static void faults_of_a_file_are_said_of_that_file(void **state)
{
	(void)state;
	wrong("", "\nprovider \"a\" { mx = { \"a b\" } }\n", own_path, 2, "not the name of a host");
	wrong("", "hostname = \"x\"\n", own_path, 1, "hostname");
	wrong("", "transport \"x\" { }\n", own_path, 1, "transport");
	wrong("", "provider \"a\" {\n", own_path, 1, "");
	wrong("", NULL, conf_path, 1, "can't be read");
	wrong("provider \"a\" { connection_limit = 3 }\n", "provider \"a\" { mx = { \"a b\" } }\n",
	      own_path, 1, "not the name of a host");
}

static void hundreds_are_found(void **state)
{
	(void)state;
	struct buf text = {0};
	char host[64], name[16];
	for (int i = 0; i < 500; i++)
		buf_printf(&text, "provider \"p%d\" { mx = { \".p%d.test\", \".x.p%d.test\" } }\n",
			   i, i, i);
	struct conf *c = read_both("", buf_cstr(&text));
	assert_non_null(c);
	for (int i = 0; i < 500; i++) {
		snprintf(host, sizeof host, "mx.y.x.p%d.test", i);
		snprintf(name, sizeof name, "p%d", i);
		assert_string_equal(name_of(c, host), name);
	}
	conf_unref(c);
	buf_fini(&text);
}

static void the_list_that_is_shipped_is_good_and_limits_nothing(void **state)
{
	(void)state;
	char *text = mem_strdup("providers = { \"etc/providers.conf\" }\n");
	write_file(conf_path, text);
	free(text);
	buf_clear(&errors);
	struct conf *c = conf_read(conf_path, &errors);
	unlink(conf_path);
	assert_string_equal(buf_cstr(&errors), "");
	assert_non_null(c);
	assert_true(c->nprovider > 40);
	for (int i = 0; i < c->nprovider; i++) {
		assert_int_equal(c->provider[i].connection_limit, 0);
		assert_int_equal(c->provider[i].rate.events, 0);
	}
	assert_string_equal(name_of(c, "aspmx.l.google.com"), "google");
	assert_string_equal(name_of(c, "contoso-com.mail.protection.outlook.com"), "microsoft");
	assert_string_equal(name_of(c, "hotmail-com.olc.protection.outlook.com"), "microsoft");
	assert_string_equal(name_of(c, "mta7.am0.yahoodns.net"), "yahoo");
	assert_string_equal(name_of(c, "mx.example.org"), "");
	conf_unref(c);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(conf_path, sizeof conf_path, "/tmp/test_conf_provider.%d", (int)getpid());
	snprintf(own_path, sizeof own_path, "/tmp/test_conf_provider.%d.own", (int)getpid());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	buf_fini(&errors);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_suffix_of_whole_labels_wins),
		cmocka_unit_test(names_are_found_however_they_are_written),
		cmocka_unit_test(a_section_is_laid_over_that_of_a_file),
		cmocka_unit_test(what_is_wrong_is_said_with_its_place),
		cmocka_unit_test(it_has_the_transport_that_it_names),
		cmocka_unit_test(a_transport_that_is_not_there_is_said_with_its_place),
		cmocka_unit_test(two_of_one_suffix_are_a_fault),
		cmocka_unit_test(faults_of_a_file_are_said_of_that_file),
		cmocka_unit_test(hundreds_are_found),
		cmocka_unit_test(the_list_that_is_shipped_is_good_and_limits_nothing),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
