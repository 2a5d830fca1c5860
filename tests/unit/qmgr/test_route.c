/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "qmgr/route/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct conf *conf;
static struct route_table *table;

static int end(void **state)
{
	(void)state;
	route_table_free(&table);
	conf_unref(conf);
	conf = NULL;
	return 0;
}

static void routes(const char *text)
{
	conf = conf_of(text);
	table = route_table_new(conf);
}

static void leads(const char *address, const char *title)
{
	const struct route *route = route_find(table, "from@sender.test", address);
	const struct conf_route *section = NULL;
	for (int i = 0; i < conf->nroute; i++)
		if (conf->route[i].line == route->origin.line)
			section = &conf->route[i];
	assert_non_null(section);
	assert_string_equal(section->title, title);
}

static const char many[] = "route \"boss@example.test\" { relay = { \"a.test\" } }\n"
			   "route \"example.test\" { relay = { \"b.test\" } }\n"
			   "route \".example.test\" { relay = { \"c.test\" } }\n"
			   "route \".deep.example.test\" { relay = { \"d.test\" } }\n"
			   "route \".test\" { relay = { \"e.test\" } }\n"
			   "route \"*\" { relay = { \"f.test\" } }\n";

static void the_full_address_wins(void **state)
{
	(void)state;
	routes(many);
	leads("boss@example.test", "boss@example.test");
	leads("bosse@example.test", "example.test");
}

static void the_local_part_is_compared_without_regard_to_case(void **state)
{
	(void)state;
	routes(many);
	leads("Boss@example.test", "boss@example.test");
}

static void the_domain_wins_over_its_parents(void **state)
{
	(void)state;
	routes(many);
	leads("x@example.test", "example.test");
}

#define X60 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void titles_of_any_length_are_found(void **state)
{
	(void)state;
	routes("route \"" X60 ".t\" { relay = { \"a.test\" } }\n"
	       "route \"" X60 ".te\" { relay = { \"b.test\" } }\n"
	       "route \"" X60 "." X60 ".test\" { relay = { \"c.test\" } }\n"
	       "route \"*\" { relay = { \"d.test\" } }\n");
	leads("x@" X60 ".t", X60 ".t");
	leads("x@" X60 ".te", X60 ".te");
	leads("x@" X60 "." X60 ".test", X60 "." X60 ".test");
	leads("x@" X60 ".tes", "*");
	leads("x@" X60 "." X60 ".tes", "*");
}

static void the_longest_parent_wins(void **state)
{
	(void)state;
	routes(many);
	leads("x@a.example.test", ".example.test");
	leads("x@a.b.example.test", ".example.test");
	leads("x@a.deep.example.test", ".deep.example.test");
	leads("x@other.test", ".test");
}

static void a_parent_does_not_hold_for_itself(void **state)
{
	(void)state;
	routes(many);
	leads("x@deep.example.test", ".example.test");
	leads("x@test", "*");
}

static void a_domain_that_merely_ends_alike_is_another(void **state)
{
	(void)state;
	routes(many);
	leads("x@myexample.test", ".test");
}

static void all_else_goes_the_last_way(void **state)
{
	(void)state;
	routes(many);
	leads("x@elsewhere.invalid", "*");
	leads("postmaster", "*");
	leads("x@[192.0.2.1]", "*");
	assert_string_equal(route_find(table, "", "x@elsewhere.invalid")->relay->item[0], "f.test");
}

static void there_is_a_last_way_when_none_is_configured(void **state)
{
	(void)state;
	routes("");
	leads("x@example.test", "*");
	const struct route *route = route_find(table, "", "x@example.test");
	assert_int_equal(route->relay->n, 0);
	assert_string_equal(route->by->title, "smtp");
}

static void a_domain_in_quotes_of_the_local_part_is_none(void **state)
{
	(void)state;
	routes(many);
	leads("\"x@example.test\"@elsewhere.invalid", "*");
}

static void an_address_too_long_to_be_one_still_has_a_route(void **state)
{
	(void)state;
	routes(many);
	char address[2000];
	memset(address, 'a', sizeof address);
	strcpy(address + 1500, "@example.test");
	leads(address, "example.test");
}

static void goes_from(const char *sender, const char *relay)
{
	const struct route *route = route_find(table, sender, "x@example.test");
	assert_string_equal(route->relay->item[0], relay);
}

static void a_route_from_some_senders_is_not_there_for_others(void **state)
{
	(void)state;
	routes("route \"example.test\" { relay = { \"a.test\" } "
	       "from = { \"Me@one.test\", \"two.test\", \".three.test\", \"<>\" } }\n"
	       "route \"*\" { relay = { \"b.test\" } }\n");
	goes_from("me@one.test", "a.test");
	goes_from("you@one.test", "b.test");
	goes_from("you@two.test", "a.test");
	goes_from("you@three.test", "b.test");
	goes_from("you@of.three.test", "a.test");
	goes_from("", "a.test");
}

static void the_last_way_may_be_for_some_senders_too(void **state)
{
	(void)state;
	routes("route \"*\" { relay = { \"a.test\" } from = { \"one.test\" } }\n");
	goes_from("me@one.test", "a.test");
	const struct route *route = route_find(table, "", "x@example.test");
	assert_int_equal(route->relay->n, 0);
	assert_string_equal(route->by->title, "smtp");
}

static void a_section_may_be_an_error_or_the_end(void **state)
{
	(void)state;
	routes("route \"a.test\" { error = \"4.3.2 closed\" }\nroute \"b.test\" { discard = true "
	       "}\n");
	const struct route *route = route_find(table, "", "x@a.test");
	assert_int_equal(route->action, ROUTE_ERROR);
	assert_string_equal(route->dsn, "4.3.2");
	assert_string_equal(route->text, "closed");
	assert_int_equal(route_find(table, "", "x@b.test")->action, ROUTE_DISCARD);
}

static void a_row_of_a_table_leads_where_no_section_names_an_address(void **state)
{
	char path[] = "/tmp/test_route.XXXXXX", text[sizeof path + 100];
	int fd = mkstemp(path);
	(void)state;
	assert_true(fd >= 0);
	dprintf(fd, "a.test relay=a.relay.test\n");
	close(fd);
	snprintf(text, sizeof text,
		 "route \"*\" { relay = { \"rest.test\" } }\nroutes = { \"%s\" }\n", path);
	routes(text);
	unlink(path);
	assert_string_equal(route_find(table, "", "x@a.test")->relay->item[0], "a.relay.test");
	assert_string_equal(route_find(table, "", "x@b.test")->relay->item[0], "rest.test");
}

#define TEST(name) cmocka_unit_test_teardown(name, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_full_address_wins),
		TEST(the_local_part_is_compared_without_regard_to_case),
		TEST(the_domain_wins_over_its_parents),
		TEST(titles_of_any_length_are_found),
		TEST(the_longest_parent_wins),
		TEST(a_parent_does_not_hold_for_itself),
		TEST(a_domain_that_merely_ends_alike_is_another),
		TEST(all_else_goes_the_last_way),
		TEST(there_is_a_last_way_when_none_is_configured),
		TEST(a_domain_in_quotes_of_the_local_part_is_none),
		TEST(an_address_too_long_to_be_one_still_has_a_route),
		TEST(a_route_from_some_senders_is_not_there_for_others),
		TEST(the_last_way_may_be_for_some_senders_too),
		TEST(a_section_may_be_an_error_or_the_end),
		TEST(a_row_of_a_table_leads_where_no_section_names_an_address),
	};
	return RUN(tests);
}
