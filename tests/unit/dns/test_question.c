/* SPDX-License-Identifier: ISC
 * question.c itself; channel and validators are replaced by lists of what they were asked, and the clock is the test's. */
#include "dns/question.h"

#include "base/mem.h"
#include "dns/channel.h"
#include "dns/dnssec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ASKED_MAX = 20000 };

static struct loop *loop;
static struct conf conf;
static struct questions *questions;
static struct asker asker[ASKED_MAX];
static int nasker, nanswered;

/* What was sent and has no answer yet, and how many there were in all. */
static struct channel_query *sent[ASKED_MAX];
static struct validation *validating[ASKED_MAX];
static int nsent, nsent_ever, nvalidating;

struct channel *channel_new(struct loop *l, const struct conf_dns *settings,
			    const struct channel *before, void (*worked)(void *), void *owner)
{
	(void)l, (void)settings, (void)before, (void)worked, (void)owner;
	return NULL;
}

void channel_free(struct channel **channel)
{
	(void)channel;
	while (nsent > 0) {
		nsent--;
		sent[nsent]->replied(sent[nsent], CHANNEL_CLOSED, NULL, 0);
	}
}

void channel_send(struct channel *channel, const void *bytes, size_t len,
		  struct channel_query *query)
{
	enum { CD = 0x10 }; /* in the fourth byte (RFC 4035 4.1) */
	(void)channel;
	assert_true(len > 4 && ((const unsigned char *)bytes)[3] & CD);
	nsent_ever++;
	sent[nsent++] = query;
}

struct dnssec *dnssec_new(struct loop *l, struct conf *settings, const struct channel *channel,
			  void (*changed)(void *), void *owner)
{
	(void)l, (void)settings, (void)channel, (void)changed, (void)owner;
	return NULL;
}

void dnssec_free(struct dnssec **dnssec)
{
	(void)dnssec;
	while (nvalidating > 0) {
		nvalidating--;
		validating[nvalidating]->validated(
			validating[nvalidating],
			&(struct validator_reply){.event = CHANNEL_CLOSED});
	}
}

enum dnssec_way dnssec_way(struct dnssec *dnssec)
{
	(void)dnssec;
	return DNSSEC_VALIDATOR;
}

enum query_edns dnssec_edns(const struct dnssec *dnssec)
{
	(void)dnssec;
	return QUERY_EDNS_DO;
}

bool dnssec_believes(struct dnssec *dnssec)
{
	(void)dnssec;
	return true;
}

enum resolve_security dnssec_security(const struct dnssec *dnssec, bool authentic)
{
	(void)dnssec, (void)authentic;
	return RESOLVE_INDETERMINATE;
}

static char asked_last[300];

void dnssec_ask(struct dnssec *dnssec, const char *name, enum answer_type type,
		struct validation *validation)
{
	(void)dnssec, (void)type;
	snprintf(asked_last, sizeof asked_last, "%s", name);
	validating[nvalidating++] = validation;
}

static void count_answer(struct asker *a, struct answer *answer)
{
	(void)a, (void)answer;
	nanswered++;
}

static void ask_in_line(unsigned line, int n)
{
	for (int i = 0; i < n; i++) {
		char name[40];
		snprintf(name, sizeof name, "n%d.test", nasker);
		asker[nasker].answered = count_answer;
		asker[nasker].line = line;
		list_init(&asker[nasker].link);
		question_ask(questions, name, ANSWER_MX, &asker[nasker]);
		nasker++;
	}
	questions_work(questions);
}

static void ask_for_names(int n)
{
	ask_in_line(0, n);
}

/* Validators answer n of theirs, those that have waited longest. */
static void answer_validated(int n)
{
	static const struct validator_reply reply = {.event = CHANNEL_REPLY,
						     .security = RESOLVE_BOGUS};
	assert_true(nvalidating >= n);
	struct validation *answered[ASKED_MAX];
	memcpy(answered, validating, (size_t)n * sizeof *validating);
	nvalidating -= n;
	memmove(validating, validating + n, (size_t)nvalidating * sizeof *validating);
	for (int i = 0; i < n; i++)
		answered[i]->validated(answered[i], &reply);
	questions_work(questions);
}

static void answer_sent(enum channel_event event)
{
	struct channel_query *query = sent[--nsent];
	query->replied(query, event, NULL, 0);
	questions_work(questions);
}

static void pass_ms(int64_t ms)
{
	loop->now_ms += ms;
	timers_run(&loop->timers, loop->now_ms);
}

static int set_up(void **state)
{
	(void)state;
	loop = loop_new("dns", NULL, NULL, NULL);
	conf = (struct conf){.hostname = (char *)"relay.test"};
	conf.dns.timeout = 5000;
	conf.dns.tries = 2;
	nasker = nanswered = nsent = nsent_ever = nvalidating = 0;
	questions = questions_new(loop, &conf);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	questions_free(&questions);
	loop_free(&loop);
	return 0;
}

static void validators_get_256_in_one_moment_and_others_wait_for_those(void **state)
{
	(void)state;
	ask_for_names(1000);
	assert_int_equal(nvalidating, QUESTION_VALIDATING_MAX);
	answer_validated(3);
	assert_int_equal(nanswered, 3);
	assert_int_equal(nvalidating, QUESTION_VALIDATING_MAX);
	pass_ms(QUESTION_BRISK_MS - 1);
	assert_int_equal(nvalidating, QUESTION_VALIDATING_MAX);
	assert_int_equal(nsent, 0);
}

static void where_validators_are_quick_each_name_is_asked_for_once(void **state)
{
	(void)state;
	ask_for_names(10000);
	for (int i = 0; i < 10000 / 100; i++) {
		answer_validated(100);
		pass_ms(200);
	}
	assert_int_equal(nanswered, 10000);
	assert_int_equal(nsent_ever, 0);
}

static void where_names_hold_validators_for_a_second_others_are_answered_before(void **state)
{
	(void)state;
	ask_for_names(900);
	pass_ms(QUESTION_BRISK_MS);
	assert_int_equal(nvalidating, QUESTION_VALIDATING_MAX);
	assert_int_equal(nsent, 900 - QUESTION_VALIDATING_MAX);
	answer_sent(CHANNEL_TIMEOUT); /* validators never hear of that one */
	assert_int_equal(nanswered, 1);
	assert_int_equal(nvalidating, QUESTION_VALIDATING_MAX);
	answer_sent(CHANNEL_REPLY);
	answer_sent(CHANNEL_FAILED);
	assert_int_equal(nanswered, 1);
	assert_int_equal(nvalidating, QUESTION_VALIDATING_MAX + 2);
}

static void a_few_names_that_hold_validators_change_nothing(void **state)
{
	(void)state;
	ask_for_names(QUESTION_UNSEEN_MAX - 1);
	pass_ms(10 * QUESTION_BRISK_MS);
	ask_for_names(2);
	assert_int_equal(nvalidating, QUESTION_UNSEEN_MAX);
	assert_int_equal(nsent, 1);
	answer_validated(QUESTION_UNSEEN_MAX - 1);
	ask_for_names(QUESTION_VALIDATING_MAX - 1);
	assert_int_equal(nvalidating, QUESTION_VALIDATING_MAX);
	assert_int_equal(nsent, 1);
}

static void nothing_waits_for_validators_longer_than_until_they_are_slow(void **state)
{
	(void)state;
	ask_for_names(QUESTION_UNDER_WAY_MAX + 1);
	pass_ms(QUESTION_BRISK_MS);
	assert_int_equal(nvalidating + nsent, QUESTION_UNDER_WAY_MAX + 1);
	ask_for_names(QUESTION_UNDER_WAY_MAX + 1);
	for (int i = 0; i < 3; i++)
		pass_ms(QUESTION_BRISK_MS);
	assert_int_equal(nvalidating + nsent, 2 * (QUESTION_UNDER_WAY_MAX + 1));
	assert_int_equal(nanswered, 0);
}

static void who_asks_for_few_names_does_not_wait_for_a_line_of_thousands(void **state)
{
	(void)state;
	ask_in_line(3, 5000);
	ask_in_line(4 + QUESTION_LINES, 1); /* n5000.test */
	ask_in_line(2, 1);
	answer_validated(1);
	assert_string_equal(asked_last, "n5000.test");
	answer_validated(1);
	assert_string_equal(asked_last, "n5001.test");
	answer_validated(1);
	assert_string_equal(asked_last, "n256.test"); /* the line goes on where it was */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(validators_get_256_in_one_moment_and_others_wait_for_those),
		TEST(where_validators_are_quick_each_name_is_asked_for_once),
		TEST(where_names_hold_validators_for_a_second_others_are_answered_before),
		TEST(a_few_names_that_hold_validators_change_nothing),
		TEST(who_asks_for_few_names_does_not_wait_for_a_line_of_thousands),
		TEST(nothing_waits_for_validators_longer_than_until_they_are_slow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
