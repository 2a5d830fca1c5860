/* SPDX-License-Identifier: ISC */
/* When mail that only the DNS has put off comes back. */
#include "tests/unit/qmgr/world.h"

#include "qmgr/names_away.h"

enum { STALE_MS = 6000 }; /* what was found is looked up anew */

static const char hosts[] = "10 mx.test 192.0.2.1";
static uint64_t last_id;

static int end(void **state)
{
	last_id = 0;
	return finish(state);
}

static void send_to(const char *domain)
{
	char to[80];
	snprintf(to, sizeof to, "x@%s", domain);
	send_mail(++last_id, to);
}

static void fails(const char *domain)
{
	send_to(domain);
	struct resolve *r = take_question(domain);
	r->failure = verdict_new(VERDICT_DEFERRED, 451, "4.4.3", NULL, "no answer");
	r->note.type = RESOLVE_ANSWER;
	post(&r->note);
	settle();
}

static struct resolve *question_of(const char *domain)
{
	struct resolve *r = take_question(domain);
	put(&questions, &r->note);
	return r;
}

/* By a name server; or by the cache. */
static void is_found(const char *domain, bool heard)
{
	send_to(domain);
	question_of(domain)->heard = heard;
	answer(domain, hosts);
}

static int called_back(void)
{
	int n = 0;
	for (int i = 0; i < told.n; i++) {
		struct spool_unpark *u = (struct spool_unpark *)told.note[i];
		if (u->note.type != SPOOL_UNPARK || u->site != SPOOL_SITE_NAMES)
			continue;
		assert_int_equal(u->most, UINT32_MAX);
		n++;
	}
	return n;
}

/* All of these have been found, and are looked up anew. */
static void begin_with(const char *const *domains)
{
	begin("");
	is_found("first.test", true);
	for (; *domains; domains++)
		is_found(*domains, true);
	assert_int_equal(called_back(), 0);
	pass_time(STALE_MS);
}

static void what_only_the_dns_has_put_off_is_parked_for_it(void **state)
{
	(void)state;
	begin("");
	fails("a.test");
	struct spool_release *r = next_told(SPOOL_RELEASE);
	assert_int_equal(r->site, SPOOL_SITE_NAMES);
	assert_true(r->parked);
	assert_in_range(r->envelope->due_ms - clock_wall_ms(), 4500, 5500);
	forget(r);
}

static void it_comes_back_with_the_first_answer_since_the_start(void **state)
{
	(void)state;
	begin("");
	fails("a.test");
	is_found("b.test", true);
	assert_int_equal(called_back(), 1);
	is_found("c.test", true);
	assert_int_equal(called_back(), 1);
}

static void and_when_a_name_is_found_as_it_was_before(void **state)
{
	(void)state;
	begin_with((const char *const[]){"a.test", NULL});
	fails("a.test");
	is_found("b.test", true);
	assert_int_equal(called_back(), 0);
	fails("a.test");
	is_found("a.test", true);
	assert_int_equal(called_back(), 1);
}

static void and_when_any_is_after_three_that_were_found_before_were_not(void **state)
{
	(void)state;
	begin_with((const char *const[]){"a.test", "b.test", "c.test", NULL});
	fails("a.test");
	fails("b.test");
	fails("a.test");
	is_found("d.test", true);
	assert_int_equal(called_back(), 0);
	fails("a.test");
	fails("b.test");
	fails("c.test");
	is_found("e.test", true);
	assert_int_equal(called_back(), 1);
}

static void domains_that_were_never_found_say_nothing_of_the_dns(void **state)
{
	(void)state;
	begin_with((const char *const[]){NULL});
	fails("a.test");
	fails("b.test");
	fails("c.test");
	is_found("d.test", true);
	is_found("a.test", true);
	assert_int_equal(called_back(), 0);
}

static void what_the_cache_answers_says_nothing_either(void **state)
{
	(void)state;
	begin_with((const char *const[]){"a.test", "b.test", "c.test", NULL});
	fails("a.test");
	fails("b.test");
	is_found("d.test", false);
	fails("c.test");
	is_found("e.test", false);
	assert_int_equal(called_back(), 0);
	is_found("f.test", true);
	assert_int_equal(called_back(), 1);
}

static void it_comes_back_once_in_five_minutes(void **state)
{
	(void)state;
	begin_with((const char *const[]){"a.test", NULL});
	fails("a.test");
	is_found("a.test", true);
	pass_time(STALE_MS);
	fails("a.test");
	is_found("a.test", true);
	assert_int_equal(called_back(), 1);
	pass_time(NAMES_AWAY_EVERY_MS - STALE_MS - 1);
	assert_int_equal(called_back(), 1);
	pass_time(1);
	assert_int_equal(called_back(), 2);
}

#define TEST(name) cmocka_unit_test_teardown(name, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_only_the_dns_has_put_off_is_parked_for_it),
		TEST(it_comes_back_with_the_first_answer_since_the_start),
		TEST(and_when_a_name_is_found_as_it_was_before),
		TEST(and_when_any_is_after_three_that_were_found_before_were_not),
		TEST(domains_that_were_never_found_say_nothing_of_the_dns),
		TEST(what_the_cache_answers_says_nothing_either),
		TEST(it_comes_back_once_in_five_minutes),
	};
	return RUN(tests);
}
