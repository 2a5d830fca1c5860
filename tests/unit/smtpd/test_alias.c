/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "base/mem.h"
#include "base/tables.h"
#include "smtpd/addressing.h"
#include "smtpd/alias.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MANY = ALIAS_MEMBERS_MAX, PARTS = 100 };

static struct conf *conf;

static void put_alias(FILE *to, const char *name, int members)
{
	fprintf(to, "%s: M0@dest.test", name);
	for (int i = 0; i < members; i++)
		fprintf(to, ", m%d@dest.test", i);
	fputs("\n", to);
}

static int start(void **state)
{
	char aliases[] = "/tmp/sluice-alias-XXXXXX", file[] = "/tmp/sluice-conf-XXXXXX";
	struct buf errors = {0};
	(void)state;
	FILE *f = fdopen(mkstemp(aliases), "w");
	put_alias(f, "many@own.test", MANY);
	put_alias(f, "part@own.test", MANY / PARTS);
	put_alias(f, "beyond@own.test", MANY + 1);
	fclose(f);
	f = fdopen(mkstemp(file), "w");
	fprintf(f, "aliases = { \"%s\" }\nalways_bcc = \"many@own.test\"\n", aliases);
	fclose(f);
	conf = conf_read(file, &errors);
	if (!conf)
		fail_msg("%s", buf_cstr(&errors));
	unlink(file);
	unlink(aliases);
	return 0;
}

static int end(void **state)
{
	(void)state;
	conf_unref(conf);
	return 0;
}

static double processor_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* For so many recipients, all of whom get a copy of the long alias too. */
static double expand(const char *alias, int times, int members)
{
	double before = processor_seconds();
	for (int i = 0; i < times; i++) {
		struct envelope *e = envelope_new();
		assert_int_equal(addressing_recipient(conf, NULL, e, alias, 0, NULL, NULL),
				 RESPONSE_OK);
		assert_int_equal(e->nrcpt, members);
		envelope_free(&e);
	}
	return processor_seconds() - before;
}

static double copy_all(const char *alias)
{
	struct envelope *e = envelope_new();
	assert_int_equal(addressing_recipient(conf, NULL, e, alias, 0, NULL, NULL), RESPONSE_OK);
	e->sender = mem_strdup("a@own.test");
	double before = processor_seconds();
	addressing_copies(conf, NULL, e);
	double took = processor_seconds() - before;
	assert_int_equal(e->nrcpt, MANY);
	envelope_free(&e);
	return took;
}

/* The best of three: what else the machine does makes each slower, and none faster. */
static double least(double a, double b)
{
	return a < b ? a : b;
}

/* Each member looked for among all others takes a hundred times as long for one of all as for a hundred of a
 * hundredth; memory that no cache has, some times. */
static void a_long_alias_costs_each_member_what_a_short_one_does(void **state)
{
	double many = 1e9, parts = 1e9;
	(void)state;
	for (int i = 0; i < 3; i++) {
		many = least(many, expand("many@own.test", 1, MANY));
		parts = least(parts, expand("part@own.test", PARTS, MANY / PARTS));
	}
	if (many > 25 * parts)
		fail_msg("%g s for one, %g s for a hundred of a hundredth", many, parts);
}

static void copies_for_a_long_alias_cost_no_more_than_its_members(void **state)
{
	double copies = 1e9, many = 1e9;
	(void)state;
	for (int i = 0; i < 3; i++) {
		copies = least(copies, copy_all("many@own.test"));
		many = least(many, expand("many@own.test", 1, MANY));
	}
	if (copies > 25 * many)
		fail_msg("%g s for the copies, %g s for the members", copies, many);
}

static void more_members_than_an_alias_may_have_are_refused(void **state)
{
	struct envelope *e = envelope_new();
	(void)state;
	assert_int_equal(addressing_recipient(conf, NULL, e, "beyond@own.test", 0, NULL, NULL),
			 RESPONSE_ALIAS_LOOP);
	assert_int_equal(e->nrcpt, 0);
	envelope_free(&e);
}

static const struct recipient *named_twice(struct envelope *e, uint8_t first, uint8_t second)
{
	struct alias_added added = {0};
	assert_int_equal(
		addressing_recipient(conf, NULL, e, "a@dest.test", first, "rfc822;one", NULL),
		RESPONSE_OK);
	assert_int_equal(
		addressing_recipient(conf, NULL, e, "a@dest.test", second, "rfc822;two", &added),
		RESPONSE_OK);
	assert_int_equal(e->nrcpt, 1);
	assert_int_equal(added.from, 1);
	assert_int_equal(added.to, 1);
	assert_int_equal(added.nagain, 1);
	assert_int_equal(added.again[0], 0);
	alias_added_fini(&added);
	return e->rcpt;
}

static void who_is_named_twice_is_there_once_and_reported_as_either_wants(void **state)
{
	static const uint8_t wants[][3] = {
		{0, 0, 0},
		{0, NOTIFY_NEVER, 0},
		{NOTIFY_NEVER, 0, 0},
		{NOTIFY_NEVER, NOTIFY_NEVER, NOTIFY_NEVER},
		{NOTIFY_NEVER, NOTIFY_SUCCESS, NOTIFY_SUCCESS},
		{NOTIFY_SUCCESS, NOTIFY_FAILURE, NOTIFY_SUCCESS | NOTIFY_FAILURE},
		{0, NOTIFY_SUCCESS, NOTIFY_SUCCESS | NOTIFY_FAILURE | NOTIFY_DELAY},
		{NOTIFY_DELAY, 0, NOTIFY_FAILURE | NOTIFY_DELAY},
	};
	(void)state;
	for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
		struct envelope *e = envelope_new();
		const struct recipient *r = named_twice(e, wants[i][0], wants[i][1]);
		assert_int_equal(r->notify, wants[i][2]);
		assert_string_equal(r->orcpt, "rfc822;one");
		envelope_free(&e);
	}
}

static void members_that_are_there_already_are_told_apart(void **state)
{
	struct envelope *e = envelope_new();
	struct alias_added added = {0};
	(void)state;
	assert_int_equal(addressing_recipient(conf, NULL, e, "m1@dest.test", 0, NULL, NULL),
			 RESPONSE_OK);
	assert_int_equal(addressing_recipient(conf, NULL, e, "part@own.test", 0, NULL, &added),
			 RESPONSE_OK);
	assert_int_equal(e->nrcpt, MANY / PARTS);
	assert_int_equal(added.from, 1);
	assert_int_equal(added.to, MANY / PARTS);
	assert_int_equal(added.nagain, 1);
	assert_int_equal(added.again[0], 0);
	alias_added_fini(&added);
	assert_int_equal(addressing_recipient(conf, NULL, e, "part@own.test", 0, NULL, &added),
			 RESPONSE_OK);
	assert_int_equal(e->nrcpt, MANY / PARTS);
	assert_int_equal(added.nagain, MANY / PARTS);
	alias_added_fini(&added);
	envelope_free(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_long_alias_costs_each_member_what_a_short_one_does),
		cmocka_unit_test(copies_for_a_long_alias_cost_no_more_than_its_members),
		cmocka_unit_test(who_is_named_twice_is_there_once_and_reported_as_either_wants),
		cmocka_unit_test(members_that_are_there_already_are_told_apart),
		cmocka_unit_test(more_members_than_an_alias_may_have_are_refused),
	};
	return cmocka_run_group_tests(tests, start, end);
}
