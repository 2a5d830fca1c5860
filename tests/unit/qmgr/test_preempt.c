/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "qmgr/message.h"
#include "qmgr/sched/job.h"
#include "qmgr/sched/preempt.h"

/* One connection to one host, one entry a recipient, one delivery at a time: each line of events is
 * the order in which messages get the slots. */
static char conf_text[600];

static void begin_line(const char *settings)
{
	snprintf(conf_text, sizeof conf_text,
		 "transport smtp { connection_limit = 1 connection_max_messages = 0 "
		 "destination_recipient_limit = 1 pipeline_depth = 1 %s }\n"
		 "route \"*\" { relay = { \"[relay.test]:25\" } }",
		 settings);
	begin(conf_text);
}

#define NO_LOAN "delivery_slot_discount = 0 delivery_slot_loan = 0 "

static void send_to(uint64_t id, int recipients)
{
	struct envelope *e = mail(id, "", NULL);
	for (int i = 0; i < recipients; i++) {
		char to[40];
		snprintf(to, sizeof to, "x%d@a.test", i);
		envelope_add(e, to);
	}
	arrive(e);
	if (questions.n > 0)
		answer("relay.test", "0 relay.test 192.0.2.1");
}

/* Messages of these sizes come one after the other; the connection is ready after that. */
static void send_sizes(const int *sizes, int n)
{
	for (int i = 0; i < n; i++)
		send_to((uint64_t)i + 1, sizes[i]);
	ready(open_at(0), 1);
}

static void forget_told(void)
{
	while (told.n > 0)
		forget(take(&told, 0));
}

static uint64_t next_slot(void)
{
	assert_int_equal(given.n, 1);
	uint64_t id = given_at(0)->id;
	done(given_at(0), VERDICT_SENT);
	forget_told();
	return id;
}

/* "1x9 3x3 ...": whose slots they are, run by run. */
static void slots_are(const char *settings, const int *sizes, int n, const char *expected)
{
	struct buf got;
	buf_init(&got);
	begin_line(settings);
	send_sizes(sizes, n);
	uint64_t last = 0;
	int run = 0;
	while (given.n > 0) {
		uint64_t id = next_slot();
		if (id != last && run > 0)
			buf_printf(&got, "%dx%d ", (int)last, run);
		run = id == last ? run + 1 : 1;
		last = id;
	}
	buf_printf(&got, "%dx%d", (int)last, run);
	assert_string_equal(buf_cstr(&got), expected);
	buf_fini(&got);
	finish(NULL);
}

#define SLOTS(settings, expected, ...)                                                             \
	do {                                                                                       \
		static const int sizes[] = {__VA_ARGS__};                                          \
		slots_are(settings, sizes, sizeof sizes / sizeof sizes[0], expected);              \
	} while (0)

static void the_sequences_of_the_document(void **state)
{
	(void)state;
	SLOTS("delivery_slot_cost = 2 minimum_delivery_slots = 3 " NO_LOAN, "1x4 2x2 1x4 3x2 1x2",
	      10, 2, 2);
	SLOTS("delivery_slot_cost = 2 delivery_slot_discount = 50 delivery_slot_loan = 0",
	      "1x2 2x2 1x4 3x2 1x4", 10, 2, 2);
}

static void the_sequences_of_a_real_postfix(void **state)
{
	(void)state;
	SLOTS("delivery_slot_cost = 3 " NO_LOAN, "1x9 3x3 1x11 2x5", 20, 5, 3);
	SLOTS("", "1x10 3x10 1x275 2x100 1x715", 1000, 100, 10);
	SLOTS("delivery_slot_cost = 2 " NO_LOAN, "1x4 2x1 3x1 4x1 5x1", 4, 1, 1, 1, 1);
	SLOTS("delivery_slot_cost = 2 minimum_delivery_slots = 1 " NO_LOAN,
	      "1x2 2x1 1x2 3x1 4x1 5x1", 4, 1, 1, 1, 1);
}

static void a_cost_below_two_lets_nobody_slip_past(void **state)
{
	(void)state;
	SLOTS("delivery_slot_cost = 1", "1x100 2x1", 100, 1);
	SLOTS("delivery_slot_cost = 0", "1x100 2x1", 100, 1);
}

static void twenty_single_messages_slip_past_a_bulk_message(void **state)
{
	(void)state;
	int in_front = 0, slots = 0;
	begin_line("");
	send_to(1, 1000);
	ready(open_at(0), 1);
	for (int i = 0; i < 100; i++)
		assert_int_equal(next_slot(), 1);
	for (uint64_t id = 2; id <= 21; id++)
		send_to(id, 1);
	/* The one under way is the bulk message's, which has saved 100 fifths. */
	assert_int_equal(next_slot(), 1);
	for (; in_front < 20 && slots < 200; slots++)
		in_front += next_slot() != 1;
	assert_int_equal(in_front, 20);
	assert_int_equal(slots, 20);
	finish(NULL);
}

/* Without anything saved up, one comes within five slots of the last. */
static void a_single_message_behind_a_bulk_message_leaves_within_five_slots(void **state)
{
	(void)state;
	begin_line(NO_LOAN);
	send_to(1, 10000);
	ready(open_at(0), 1);
	for (uint64_t id = 2; id <= 101; id++) {
		send_to(id, 1);
		int slots = 1;
		while (next_slot() != id)
			slots++;
		assert_in_range(slots, 1, 7); /* one is under way; the price of one is five */
	}
	finish(NULL);
}

static void the_oldest_of_equal_size_slips_past_first(void **state)
{
	(void)state;
	begin_line("");
	send_to(1, 100);
	ready(open_at(0), 1);
	for (uint64_t id = 2; id <= 6; id++) {
		pass_time(1500);
		send_to(id, 2);
	}
	uint64_t expected = 2;
	while (expected <= 6) {
		uint64_t id = next_slot();
		if (id == 1)
			continue;
		assert_true(id == expected);
		assert_true(next_slot() == expected);
		expected++;
	}
	finish(NULL);
}

/* Age over size: 10 entries that have waited for a minute come before one that has just come. */
static void an_old_message_of_ten_comes_before_a_new_one_of_one(void **state)
{
	(void)state;
	begin_line("");
	send_to(1, 1000);
	ready(open_at(0), 1);
	send_to(2, 10);
	pass_time(60000);
	send_to(3, 1);
	uint64_t id;
	while ((id = next_slot()) == 1)
		;
	assert_int_equal(id, 2);
	finish(NULL);
}

/* The price is that of all its entries, however much the discount lets it come early. */
static void what_was_borrowed_is_paid_before_the_next_slips_past(void **state)
{
	(void)state;
	SLOTS("delivery_slot_cost = 2 minimum_delivery_slots = 1 delivery_slot_discount = 100",
	      "1x1 2x8 1x16 3x8 1x23", 40, 8, 8);
}

/* Pure: parents, children, siblings. */
static struct conf *conf;
static const struct conf_transport *smtp;

static int begin_pure(void **state)
{
	(void)state;
	conf = conf_of("transport smtp { delivery_slot_cost = 2 minimum_delivery_slots = 1 }");
	smtp = &conf->transport[0];
	return 0;
}

static int finish_pure(void **state)
{
	(void)state;
	conf_unref(conf);
	return 0;
}

static void save(struct stack *s, int n)
{
	while (n-- > 0)
		preempt_count(s);
}

static void a_child_pays_in_advance_and_gets_back_what_it_did_not_use(void **state)
{
	(void)state;
	struct stack parent, child;
	stack_init(&parent);
	stack_init(&child);
	save(&parent, 10);
	preempt_push(&parent, &child, 5, smtp);
	assert_int_equal(parent.available, 0);
	assert_int_equal(child.level, 1);
	assert_false(stack_leaf(&parent));
	save(&child, 3);
	preempt_pop(&child, smtp);
	assert_int_equal(parent.available, 4);
	assert_true(stack_leaf(&parent));
	assert_int_equal(child.level, 0);
}

static void two_children_are_siblings(void **state)
{
	(void)state;
	struct stack parent, first, second;
	stack_init(&parent);
	stack_init(&first);
	stack_init(&second);
	save(&parent, 10);
	preempt_push(&parent, &first, 2, smtp);
	preempt_push(&parent, &second, 3, smtp);
	assert_int_equal(parent.available, 0);
	assert_int_equal(second.level, 1);
	preempt_pop(&first, smtp);
	assert_false(stack_leaf(&parent));
	preempt_pop(&second, smtp);
	assert_true(stack_leaf(&parent));
	assert_int_equal(parent.available, 10);
}

static void children_of_a_parent_that_ends_are_adopted(void **state)
{
	(void)state;
	struct stack one, four, seven, eight;
	stack_init(&one);
	stack_init(&four);
	stack_init(&seven);
	stack_init(&eight);
	save(&one, 20);
	preempt_push(&one, &four, 8, smtp);
	save(&four, 8);
	preempt_push(&four, &seven, 2, smtp);
	preempt_push(&four, &eight, 2, smtp);
	preempt_pop(&four, smtp); /* all is used */
	assert_true(seven.parent == &one && eight.parent == &one);
	assert_int_equal(one.available, 4);
	assert_int_equal(seven.level, 2);
	/* It was 4 that paid for 7: 1 gets nothing back. */
	preempt_pop(&seven, smtp);
	assert_int_equal(one.available, 4);
	assert_false(stack_leaf(&one));
	preempt_pop(&one, smtp); /* ends, with nobody to adopt the last one */
	assert_null(eight.parent);
	preempt_pop(&eight, smtp);
	assert_int_equal(eight.level, 0);
}

static void discount_and_loan_let_it_come_early(void **state)
{
	(void)state;
	struct conf_transport t = *smtp;
	struct stack s;
	stack_init(&s);
	t.delivery_slot_cost = 5;
	t.delivery_slot_discount = 50;
	t.delivery_slot_loan = 3;
	assert_true(preempt_affordable(&s, 6, &t));
	assert_false(preempt_affordable(&s, 7, &t));
	save(&s, 5);
	assert_true(preempt_affordable(&s, 8, &t));
	assert_false(preempt_affordable(&s, 9, &t));
	assert_int_equal(preempt_payable(&s, 94, &t), 19);
}

#define PURE(name) cmocka_unit_test_setup_teardown(name, begin_pure, finish_pure)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sequences_of_the_document),
		cmocka_unit_test(the_sequences_of_a_real_postfix),
		cmocka_unit_test(a_cost_below_two_lets_nobody_slip_past),
		cmocka_unit_test(twenty_single_messages_slip_past_a_bulk_message),
		cmocka_unit_test(a_single_message_behind_a_bulk_message_leaves_within_five_slots),
		cmocka_unit_test(the_oldest_of_equal_size_slips_past_first),
		cmocka_unit_test(an_old_message_of_ten_comes_before_a_new_one_of_one),
		cmocka_unit_test(what_was_borrowed_is_paid_before_the_next_slips_past),
		PURE(a_child_pays_in_advance_and_gets_back_what_it_did_not_use),
		PURE(two_children_are_siblings),
		PURE(children_of_a_parent_that_ends_are_adopted),
		PURE(discount_and_loan_let_it_come_early),
	};
	return RUN(tests);
}
