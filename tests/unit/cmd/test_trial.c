/* SPDX-License-Identifier: ISC */
/* A program that is to take the relay's place is run beside it first: what cannot be executed, ends badly or does not end is known. */
#include "tests/unit/cmd/unit.h"

#include "cmd/relay/trial.c"

#include <stdio.h>
#include <time.h>

static const char unasked[] = "usage: sluice serve";

/* What came of a script, or why it did not pass. */
static bool passes(const char *script, int seconds, struct buf *why)
{
	char sh[] = "sh", c[] = "-c", text[300];
	char *words[] = {sh, c, text, NULL};
	struct trial t = {0};
	snprintf(text, sizeof text, "%s", script);
	buf_clear(why);
	assert_true(trial_begin(&t, "/bin/sh", words, seconds));
	while (!trial_over(&t))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	bool passed = trial_passed(&t, unasked, why);
	trial_forget(&t);
	assert_int_equal(t.pid, 0);
	return passed;
}

static void what_would_start_passes(void **state)
{
	(void)state;
	struct buf why = {0};
	assert_true(passes("echo fine; exit 0", 60, &why));
	assert_int_equal(buf_len(&why), 0);
	buf_fini(&why);
}

static void what_runs_and_knows_no_such_question_passes(void **state)
{
	(void)state;
	struct buf why = {0};
	assert_true(passes("echo 'usage: sluice serve [-c FILE]' >&2; exit 2", 60, &why));
	assert_false(passes("echo 'usage: another' >&2; exit 2", 60, &why));
	assert_string_equal(buf_cstr(&why), "usage: another\n");
	buf_fini(&why);
}

static void what_ends_badly_says_why(void **state)
{
	(void)state;
	struct buf why = {0};
	assert_false(passes("echo one; echo two >&2; exit 127", 60, &why));
	assert_string_equal(buf_cstr(&why), "one\ntwo\n");
	assert_false(passes("exit 3", 60, &why));
	assert_string_equal(buf_cstr(&why), "it ends with status 3\n");
	assert_false(passes("kill -ILL $$", 60, &why));
	assert_string_equal(buf_cstr(&why), "Illegal instruction\n");
	buf_fini(&why);
}

static void what_does_not_end_is_ended(void **state)
{
	(void)state;
	struct buf why = {0};
	assert_false(passes("exec sleep 1000", 1, &why));
	assert_string_equal(buf_cstr(&why), "it has not answered within 1 s\n");
	buf_fini(&why);
}

static void of_a_flood_the_beginning_is_kept(void **state)
{
	(void)state;
	struct buf why = {0};
	assert_false(passes("i=0; while [ $i -lt 3000 ]; do echo 01234567890123456789; i=$((i+1)); "
			    "done; exit 1",
			    60, &why));
	assert_int_equal(buf_len(&why), TEXT_MOST + 1);
	buf_fini(&why);
}

static void what_can_not_be_executed_says_why(void **state)
{
	(void)state;
	struct buf why = {0};
	char word[] = "sluice", *words[] = {word, NULL};
	struct trial t = {0};
	assert_true(trial_begin(&t, "/nowhere/sluice", words, 60));
	while (!trial_over(&t))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_false(trial_passed(&t, unasked, &why));
	assert_string_equal(buf_cstr(&why), "No such file or directory\n");
	trial_forget(&t);
	buf_fini(&why);
}

/* As whoever has started the relay may have left it: then the kernel says of no child how it has ended. */
static void whose_children_went_unseen_sees_this_one(void **state)
{
	(void)state;
	struct buf why = {0};
	signal(SIGCHLD, SIG_IGN);
	assert_false(passes("exit 3", 60, &why));
	assert_string_equal(buf_cstr(&why), "it ends with status 3\n");
	buf_fini(&why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_would_start_passes),
		cmocka_unit_test(what_runs_and_knows_no_such_question_passes),
		cmocka_unit_test(what_ends_badly_says_why),
		cmocka_unit_test(what_does_not_end_is_ended),
		cmocka_unit_test(of_a_flood_the_beginning_is_kept),
		cmocka_unit_test(what_can_not_be_executed_says_why),
		cmocka_unit_test(whose_children_went_unseen_sees_this_one),
	};
	return RUN(tests);
}
