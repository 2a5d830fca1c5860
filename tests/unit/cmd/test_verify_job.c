/* SPDX-License-Identifier: ISC */
/* The command that asks about a recipient: its answer, what it says where there is none, and who has gone meanwhile. */
#include "tests/unit/cmd/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/control/verify_job.c"
#include "cmd/text/json_put.c"

static char said[400];
static int status;
static struct verify *asked;
static struct loop *here, *qmgr;
static struct request request;

void control_say(struct request *r, const char *text, size_t len)
{
	assert_ptr_equal(r, &request);
	snprintf(said, sizeof said, "%.*s", (int)len, text);
}

void control_complain(struct request *r, const char *fmt, ...)
{
	assert_ptr_equal(r, &request);
	snprintf(said, sizeof said, "%s", fmt);
}

void control_finish(struct request *r, int with)
{
	assert_ptr_equal(r, &request);
	status = with;
}

static void take_question(void *owner, struct note *note)
{
	(void)owner;
	asked = (struct verify *)note;
}

static void ask_about(const char *json)
{
	static char *words[6];
	const char *const given[] = {"verify", "x@a.test", "--from", "", json};
	status = -1;
	for (int i = 0; i < 5; i++)
		words[i] = (char *)given[i];
	request = (struct request){.argc = json ? 5 : 4, .argv = words};
	verify_job_start(&request, here, qmgr);
	mailbox_drain(&qmgr->mailbox);
	assert_non_null(asked);
}

static void pass_time(int64_t ms)
{
	here->now_ms += ms;
	timers_run(&here->timers, here->now_ms);
}

static void answer_taken(void)
{
	asked->result = VERIFY_TAKES;
	asked->verdict = verdict_new(VERDICT_SENT, 250, "2.1.5", "mx.a.test", "2.1.5 yes");
	verify_job_answer(asked);
}

static void the_answer_is_said_once(void **state)
{
	(void)state;
	ask_about(NULL);
	pass_time(PATIENCE_MS - 1);
	assert_int_equal(status, -1);
	answer_taken();
	assert_string_equal(said,
			    "x@a.test: the next hop takes it: mx.a.test said 250 2.1.5 yes\n");
	assert_int_equal(status, STATUS_DONE);
	status = -1;
	pass_time(PATIENCE_MS);
	assert_int_equal(status, -1);
}

static void without_one_that_is_said_and_what_comes_later_is_not(void **state)
{
	(void)state;
	ask_about("--json");
	pass_time(PATIENCE_MS);
	assert_int_equal(status, STATUS_UNREACHABLE);
	assert_non_null(strstr(said, "\"result\":\"unknown\",\"host\":null,\"code\":null"));
	assert_non_null(strstr(said, "no answer within 30 s; \\\"sluice explain a.test\\\""));
	status = -1;
	answer_taken();
	assert_int_equal(status, -1);
}

static void who_has_gone_is_told_nothing(void **state)
{
	(void)state;
	ask_about(NULL);
	request.gone(&request);
	pass_time(PATIENCE_MS);
	answer_taken();
	assert_int_equal(status, -1);
}

static int begin(void **state)
{
	(void)state;
	here = loop_new("main", take_question, NULL, NULL);
	qmgr = loop_new("qmgr", take_question, NULL, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	loop_free(&here);
	loop_free(&qmgr);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_answer_is_said_once),
		cmocka_unit_test(without_one_that_is_said_and_what_comes_later_is_not),
		cmocka_unit_test(who_has_gone_is_told_nothing),
	};
	return cmocka_run_group_tests(tests, begin, end);
}
