/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/log.h"
#include "base/loop.h"
#include "base/loop_turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MS = 1000, SECOND = 1000 * MS };

static char path[64];
static struct mailbox mailbox;

static int begin(void **state)
{
	(void)state;
	struct buf error = {0};
	snprintf(path, sizeof path, "/tmp/test_loop_turn.%d", (int)getpid());
	unlink(path);
	assert_true(log_open(path, LOG_TEXT, LOG_LEVEL_INFO, &error));
	assert_true(log_start(&error));
	loop_turn_log_slower(100);
	return 0;
}

static int end(void **state)
{
	(void)state;
	loop_turn_log_slower(0);
	unlink(path);
	return 0;
}

/* The log so far; nothing is logged after that. */
static const char *logged(void)
{
	static char text[4096];
	log_close();
	FILE *in = fopen(path, "r");
	assert_non_null(in);
	text[fread(text, 1, sizeof text - 1, in)] = '\0';
	fclose(in);
	return text;
}

static void a_turn_counts_for_the_kind_of_its_thread(void **state)
{
	(void)state;
	struct loop_turn t;
	struct histogram_sum of_workers, of_others;
	loop_turn_init(&t, "smtpc-3", &mailbox);
	assert_false(loop_turn_end(&t, 5 * SECOND)); /* it began before anybody looked */
	loop_turn_begin(&t, 5 * SECOND);
	assert_false(loop_turn_end(&t, 5 * SECOND + 100 * MS));
	loop_turn_init(&t, "adopt", &mailbox);
	loop_turn_begin(&t, SECOND);
	loop_turn_end(&t, SECOND + 7);
	metrics_histogram(HISTOGRAM_turn_smtpc, &of_workers);
	metrics_histogram(HISTOGRAM_turn_other, &of_others);
	assert_int_equal(of_workers.count, 1);
	assert_int_equal(of_workers.sum, 100 * MS);
	assert_int_equal(of_others.sum, 7);
	assert_string_equal(logged(), "");
}

static void a_slow_one_is_said_with_what_took_longest(void **state)
{
	(void)state;
	struct loop_turn t;
	loop_turn_init(&t, "qmgr", &mailbox);
	loop_turn_begin(&t, SECOND);
	assert_true(mailbox.timed);
	mailbox.turn = (struct mailbox_turn){
		.notes = 12, .longest = NOTES_FROM(NOTES_OF_DELIVERY) + 2, .longest_us = 90 * MS};
	assert_true(loop_turn_end(&t, SECOND + 250 * MS));
	const char *text = logged();
	assert_non_null(
		strstr(text, " warning slow thread=qmgr what=turn seconds=0.25 processor="));
	assert_non_null(strstr(text, " notes=12 longest=DELIVERY longest_seconds=0.09\n"));
}

static void of_many_in_a_second_one_is_said(void **state)
{
	(void)state;
	struct loop_turn t;
	loop_turn_init(&t, "spool", &mailbox);
	int said = 0;
	for (int i = 0; i < 8; i++) {
		loop_turn_begin(&t, SECOND + i * 200 * MS);
		said += loop_turn_end(&t, SECOND + i * 200 * MS + 150 * MS);
	}
	assert_int_equal(said, 2);
	assert_non_null(strstr(logged(), " more=4\n"));
}

static void nothing_is_slow_where_nobody_asks(void **state)
{
	(void)state;
	struct loop_turn t;
	loop_turn_log_slower(0);
	loop_turn_init(&t, "qmgr", &mailbox);
	loop_turn_begin(&t, SECOND);
	assert_false(mailbox.timed);
	assert_false(loop_turn_end(&t, 3600LL * SECOND));
	assert_false(loop_turn_is_slow(3600LL * SECOND));
	assert_string_equal(logged(), "");
}

static struct loop *loop;

static void take_note(void *owner, struct note *n)
{
	(void)owner;
	free(n);
	ev_break(loop->ev, EVBREAK_ALL);
}

static void a_loop_has_turns(void **state)
{
	(void)state;
	struct histogram_sum before, after;
	metrics_histogram(HISTOGRAM_turn_qmgr, &before);
	loop = loop_new("qmgr", take_note, NULL, NULL);
	for (int i = 0; i < 3; i++) {
		loop_post(loop, mailbox_note(sizeof(struct note), 1));
		ev_run(loop->ev, 0);
		assert_int_equal(loop->mailbox.turn.notes, 1);
	}
	loop_free(&loop);
	metrics_histogram(HISTOGRAM_turn_qmgr, &after);
	assert_int_equal(after.count - before.count, 2); /* the third did not end with a sleep */
	log_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_turn_counts_for_the_kind_of_its_thread, begin,
						end),
		cmocka_unit_test_setup_teardown(a_slow_one_is_said_with_what_took_longest, begin,
						end),
		cmocka_unit_test_setup_teardown(of_many_in_a_second_one_is_said, begin, end),
		cmocka_unit_test_setup_teardown(nothing_is_slow_where_nobody_asks, begin, end),
		cmocka_unit_test_setup_teardown(a_loop_has_turns, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
