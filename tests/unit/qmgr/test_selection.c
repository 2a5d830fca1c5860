/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"
#include "tests/unit/base/sanitized.h"

#include "qmgr/message.h"
#include "qmgr/sched/job.h"
#include "qmgr/sched/shelf.h"

#include <time.h>

/* Sites a.test, b.test, ... each have one connection, one delivery at a time, one entry a
 * recipient. A site is blocked while its delivery is not answered. */
#define ONE_EACH                                                                                   \
	"transport smtp { destination_concurrency_limit = 1 initial_destination_concurrency = 1 "  \
	"destination_recipient_limit = 1 connection_limit = 0 connection_max_messages = 0 "        \
	"delivery_slot_cost = 2 delivery_slot_discount = 0 delivery_slot_loan = 0 "                \
	"minimum_delivery_slots = 0 }\n"

static const char *host_of(const char *domain)
{
	static char text[60];
	snprintf(text, sizeof text, "10 mx-%s 192.0.2.%d", domain, domain[0]);
	return text;
}

/* "aaab": three recipients at a.test, one at b.test */
static void send_to(uint64_t id, const char *sites)
{
	struct envelope *e = mail(id, "", NULL);
	for (int i = 0; sites[i]; i++) {
		char to[40];
		snprintf(to, sizeof to, "x%d@%c.test", i, sites[i]);
		envelope_add(e, to);
	}
	arrive(e);
	while (questions.n > 0) {
		char name[40];
		snprintf(name, sizeof name, "%s", ((struct resolve *)questions.note[0])->name);
		answer(name, host_of(name));
	}
	for (int i = 0; i < opened.n; i++)
		if (!open_at(i)->was_ready) {
			open_at(i)->was_ready = true;
			ready(open_at(i), 1);
		}
}

/* What is under way at this site, or NULL. */
static struct delivery *at(char site)
{
	for (int i = 0; i < given.n; i++)
		if (strchr(given_at(i)->rcpt[0].address, '@')[1] == site)
			return given_at(i);
	return NULL;
}

static uint64_t whose(char site)
{
	return at(site) ? at(site)->id : 0;
}

static void answer_at(char site)
{
	done(at(site), VERDICT_SENT);
}

static struct job *job_of(uint64_t id)
{
	struct message *m;
	HASH_FIND(hh, q->messages, &id, sizeof id, m);
	return list_entry(list_first(&m->work.jobs), struct job, in_message);
}

static void peers_of_a_job_are_served_in_turn(void **state)
{
	(void)state;
	begin("transport smtp { destination_recipient_limit = 1 connection_limit = 1 }\n"
	      "route \"*\" { transport = smtp }");
	struct envelope *e = mail(1, "", NULL);
	for (int i = 0; i < 9; i++) {
		char to[40];
		snprintf(to, sizeof to, "x%d@d%d.test", i, i / 3);
		envelope_add(e, to);
	}
	arrive(e);
	for (int i = 0; i < 3; i++) {
		char name[40];
		snprintf(name, sizeof name, "d%d.test", i);
		answer(name, "10 mx.test 192.0.2.1");
	}
	ready(open_at(0), 1);
	char order[30] = "";
	while (given.n > 0) {
		strncat(order, strchr(given_at(0)->rcpt[0].address, '@') + 2, 1);
		done(given_at(0), VERDICT_SENT);
	}
	/* The first was selected when only its domain was known. */
	assert_string_equal(order, "012012012");
}

static void a_blocker_is_skipped_and_comes_back_at_once(void **state)
{
	(void)state;
	begin(ONE_EACH);
	send_to(1, "aaa");
	send_to(2, "aab"); /* behind 1 at a, but b is free */
	send_to(3, "b");
	assert_int_equal(whose('a'), 1);
	assert_int_equal(whose('b'), 2);
	answer_at('b');
	assert_int_equal(whose('b'), 3);
	answer_at('a');
	assert_int_equal(whose('a'), 1);
	answer_at('a');
	answer_at('a');
	assert_int_equal(whose('a'), 2);
}

/* A destination sees its jobs in their order even when they are delivered out of order elsewhere. */
static void for_one_destination_the_order_stays(void **state)
{
	(void)state;
	begin(ONE_EACH "transport smtp2 { }");
	for (uint64_t id = 1; id <= 5; id++)
		send_to(id, id % 2 ? "ab" : "a");
	for (uint64_t id = 1; id <= 5; id++) {
		assert_int_equal(whose('a'), id);
		answer_at('a');
	}
	assert_int_equal(whose('b'), 1);
	answer_at('b');
	assert_int_equal(whose('b'), 3);
}

/* Job 1 is blocked; 2, which is the current job then, can be preempted all the same. */
static void a_job_behind_blockers_can_be_preempted(void **state)
{
	(void)state;
	begin(ONE_EACH);
	send_to(1, "aaaaaaaaaa");
	send_to(2, "bbbbbbbbbb");
	send_to(3, "b");
	assert_int_equal(whose('a'), 1);
	assert_int_equal(whose('b'), 2);
	answer_at('b');
	assert_int_equal(whose('b'), 2);
	answer_at('b');
	assert_int_equal(whose('b'), 3);
	assert_int_equal(whose('a'), 1);
}

/* A candidate at a blocked site is none. */
static void a_blocker_does_not_slip_past(void **state)
{
	(void)state;
	begin(ONE_EACH);
	send_to(1, "b");
	send_to(2, "b"); /* waits at b */
	send_to(3, "aaaaaaaaaa");
	for (int i = 0; i < 10; i++) {
		assert_int_equal(whose('a'), 3);
		assert_int_equal(whose('b'), 1);
		assert_int_equal(job_of(2)->stack.level, 0);
		answer_at('a');
	}
	answer_at('b');
	assert_int_equal(whose('b'), 2);
}

/* The picture of the document: 4 slips past 1; 7 past 4, and is blocked; 8 past 4 too; then 4 ends,
 * and 1 adopts both. */
static void children_of_a_job_that_ends_are_adopted_by_its_parent(void **state)
{
	(void)state;
	begin(ONE_EACH);
	send_to(9, "b"); /* b is taken for now */
	send_to(1, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	for (int i = 0; i < 16; i++)
		answer_at('a');
	send_to(4, "aaaaaa");
	while (whose('a') != 4)
		answer_at('a');
	assert_ptr_equal(job_of(4)->stack.parent, &job_of(1)->stack);
	answer_at('a');
	answer_at('a');
	answer_at('a');
	send_to(7, "ab"); /* fits what 4 has saved; one half of it is blocked */
	while (whose('a') != 7)
		answer_at('a');
	assert_ptr_equal(job_of(7)->stack.parent, &job_of(4)->stack);
	assert_int_equal(job_of(7)->stack.level, 2);
	uint64_t id;
	answer_at('a');
	while ((id = whose('a')) == 4)
		answer_at('a');
	assert_int_equal(id, 1);
	assert_ptr_equal(job_of(7)->stack.parent, &job_of(1)->stack);
	assert_int_equal(job_of(7)->stack.level, 2);
	int64_t available = job_of(1)->stack.available;
	answer_at('b');
	assert_int_equal(whose('b'), 7); /* ends: it owes nobody */
	assert_int_equal(job_of(1)->stack.available, available);
	assert_true(stack_leaf(&job_of(1)->stack));
}

enum { PASSAGES = SANITIZED ? 10000 : 100000 };

static void begin_a_list(uint64_t id, int n)
{
	struct envelope *e = mail(id, "", NULL);
	for (int i = 0; i < n; i++)
		envelope_add(e, "list@a.test");
	arrive(e);
	answer("a.test", host_of("a.test"));
	ready(open_at(0), 1);
	open_at(0)->was_ready = true;
}

static void forget_what_was_told(void)
{
	while (told.n > 0)
		forget(take(&told, 0));
}

/* 2 has slipped past 1 and is blocked, for good. Each message that comes then passes, too. */
static void however_many_have_passed_the_next_may(void **state)
{
	(void)state;
	begin(ONE_EACH);
	begin_a_list(1, 2 * PASSAGES + 20);
	send_to(9, "b"); /* b is taken */
	for (int i = 0; i < 8; i++)
		answer_at('a');
	send_to(2, "ab");
	while (whose('a') != 2)
		answer_at('a');
	assert_int_equal(job_of(2)->stack.level, 1);
	for (uint64_t id = 10; id < 10 + PASSAGES; id++) {
		arrive(mail(id, "", "x@a.test"));
		for (int i = 0; i < 3 && whose('a') != id; i++)
			answer_at('a');
		assert_int_equal(whose('a'), id);
		forget_what_was_told();
	}
	assert_int_equal(job_of(2)->stack.level, 1);
}

/* Of one size, and older; but it can't slip past mail of a higher priority. */
static void a_lower_priority_hides_nobody_who_may_slip_past(void **state)
{
	(void)state;
	begin(ONE_EACH);
	begin_a_list(1, 40);
	for (int i = 0; i < 8; i++)
		answer_at('a');
	struct envelope *lower = mail(2, "", "x@a.test");
	lower->priority = -4;
	arrive(lower);
	arrive(mail(3, "", "x@a.test"));
	answer_at('a');
	assert_int_equal(whose('a'), 3);
}

static void send_to_sites(uint64_t id, int n)
{
	struct envelope *e = mail(id, "", NULL);
	for (int i = 0; i < n; i++) {
		char to[40];
		snprintf(to, sizeof to, "x@d%d.test", i);
		envelope_add(e, to);
	}
	arrive(e);
	while (questions.n > 0) {
		char name[40], host[60];
		snprintf(name, sizeof name, "%s", ((struct resolve *)questions.note[0])->name);
		snprintf(host, sizeof host, "10 mx-%s 192.0.2.1", name);
		answer(name, host);
	}
}

static double processor_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Of the second list all that is left is too much for what the first will have saved. */
static double cost_of_a_search(int sites)
{
	enum { SEARCHES = 2000 };
	begin("transport smtp { destination_recipient_limit = 1 connection_limit = 1 }");
	send_to_sites(1, sites);
	send_to_sites(2, sites);
	const struct job *current = job_of(1);
	double began = processor_time();
	for (int i = 0; i < SEARCHES; i++) {
		current->claim->shelved++;
		assert_null(shelf_candidate(current, QUEUE_HUNGRY));
	}
	double cost = processor_time() - began;
	finish(NULL);
	return cost;
}

static void who_may_slip_past_is_found_among_many_sites_as_among_few(void **state)
{
	(void)state;
	double few = cost_of_a_search(40), many = cost_of_a_search(2000);
	assert_true(many < 10 * few);
	begin("");
}

static void transports_are_served_in_turn(void **state)
{
	(void)state;
	begin(ONE_EACH "transport other { like = smtp }\n"
		       "route \"b.test\" { transport = other }");
	send_to(1, "a");
	send_to(2, "b");
	answer_at('a');
	answer_at('b');
	while (told.n > 0)
		forget(take(&told, 0));
	struct envelope *one = mail(3, "", "x@a.test");
	envelope_add(one, "y@a.test");
	envelope_add(one, "x@b.test");
	envelope_add(one, "y@b.test");
	arrive(one);
	assert_int_equal(given.n, 2);
	assert_non_null(at('a'));
	assert_non_null(at('b'));
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(peers_of_a_job_are_served_in_turn),
		TEST(a_blocker_is_skipped_and_comes_back_at_once),
		TEST(for_one_destination_the_order_stays),
		TEST(a_job_behind_blockers_can_be_preempted),
		TEST(a_blocker_does_not_slip_past),
		TEST(children_of_a_job_that_ends_are_adopted_by_its_parent),
		TEST(however_many_have_passed_the_next_may),
		TEST(a_lower_priority_hides_nobody_who_may_slip_past),
		TEST(who_may_slip_past_is_found_among_many_sites_as_among_few),
		TEST(transports_are_served_in_turn),
	};
	return RUN(tests);
}
