/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "base/mem.h"
#include "cmd/text/json_put.c"
#include "cmd/text/moment.c"
#include "cmd/text/queue_print.c"
#include "cmd/text/reply_words.c"

static struct spool_row sample(void)
{
	struct envelope *e = envelope_new();
	e->id = ident_new();
	e->sender = mem_strdup("me@here.test");
	envelope_came_from(e, "ann", "192.0.2.7");
	e->arrived_ms = 1500;
	e->due_ms = 601500;
	e->rounds = 2;
	e->size = 2048;
	for (int i = 0; i < 5; i++)
		envelope_add(e, i ? "you@there.test" : "line\nbreak@there.test");
	e->rcpt[1].last = verdict_at(VERDICT_SENT, 250, "2.0.0", "", "fine", 9000);
	e->rcpt[1].done = true;
	e->rcpt[2].last = verdict_at(VERDICT_DEFERRED, 451, "4.3.0", "mx", "old \"news\"", 2000);
	e->rcpt[3].last = verdict_at(VERDICT_DEFERRED, 452, "4.2.2", "mx", "full", 3000);
	return (struct spool_row){.queue = SPOOL_DEFERRED, .envelope = e};
}

static void a_message_is_one_line_with_its_latest_reason(void **state)
{
	(void)state;
	struct spool_row row = sample();
	struct buf to;
	char id[IDENT_TEXT], expected[400];
	buf_init(&to);
	queue_print_line(&to, &row, 301500);
	snprintf(expected, sizeof expected,
		 "%s deferred  2.0K   5m from=<me@here.test> to=<line?break@there.test>,"
		 "<you@there.test>,<you@there.test>,... 4/5 next=in 5m "
		 "(mx said 452 4.2.2 full)\n",
		 ident_text(row.envelope->id, id));
	assert_string_equal(buf_cstr(&to), expected);
	buf_fini(&to);
	envelope_free(&row.envelope);
}

static void json_is_one_object_a_line(void **state)
{
	(void)state;
	struct spool_row row = sample();
	struct buf to;
	buf_init(&to);
	queue_print_json(&to, &row);
	const char *text = buf_cstr(&to);
	assert_ptr_equal(strchr(text, '\n'), text + buf_len(&to) - 1);
	assert_non_null(strstr(
		text,
		"\"queue\":\"deferred\",\"from\":\"me@here.test\","
		"\"flow\":\"here.test\",\"user\":\"ann\",\"client\":\"192.0.2.7\",\"size\":2048,"
		"\"arrived\":1.500,\"due\":601.500,\"tries\":2,\"rcpts\":["
		"{\"to\":\"line\\nbreak@there.test\",\"status\":\"waiting\","
		"\"code\":null,\"dsn\":null,\"reason\":null,\"tries\":0,"));
	assert_non_null(strstr(text, "\"status\":\"deferred\",\"code\":451,\"dsn\":\"4.3.0\","
				     "\"reason\":\"old \\\"news\\\"\""));
	buf_fini(&to);
	envelope_free(&row.envelope);
}

static void expect_part(const struct buf *text, const char *part)
{
	if (!strstr(buf_cstr((struct buf *)text), part))
		print_error("no %s in: %s\n", part, buf_cstr((struct buf *)text));
	assert_non_null(strstr(buf_cstr((struct buf *)text), part));
}

/* A member is there in each object, so that a reader need not ask for it first. */
static void json_has_null_for_what_is_not_known(void **state)
{
	(void)state;
	struct envelope *e = envelope_new();
	struct spool_row row = {.queue = SPOOL_DEFERRED, .envelope = e};
	struct buf to = {0};
	e->id = ident_new();
	e->sender = mem_strdup("");
	envelope_add(e, "you@there.test");
	struct verdict *v = verdict_at(VERDICT_DEFERRED, 0, "4.4.1", NULL, "no host answers", 9000);
	envelope_add_history(e, &(struct history){.round = 1, .nrcpt = 1, .verdict = v});
	verdict_unref(v);
	queue_print_json(&to, &row);
	expect_part(&to, "\"user\":null,\"client\":null,");
	expect_part(&to, "\"status\":\"deferred\",\"code\":null,\"dsn\":\"4.4.1\",\"host\":null,");
	buf_fini(&to);
	envelope_free(&row.envelope);
}

static void sizes_and_times_have_a_unit(void **state)
{
	(void)state;
	char text[16];
	assert_string_equal(size_text(0, text), "0B");
	assert_string_equal(size_text(999, text), "999B");
	assert_string_equal(size_text(1536, text), "1.5K");
	assert_string_equal(size_text(UINT64_C(52428800), text), "50M");
	assert_string_equal(queue_time_span(-5, text), "0s");
	assert_string_equal(queue_time_span(119000, text), "119s");
	assert_string_equal(queue_time_span(7199000, text), "119m");
	assert_string_equal(queue_time_span(INT64_C(86400000) * 3, text), "3d");
}

static void the_summary_counts(void **state)
{
	(void)state;
	struct buf to;
	buf_init(&to);
	queue_print_summary(&to, 1, 1025);
	queue_print_summary(&to, 3, 0);
	assert_string_equal(buf_cstr(&to), "-- 1 message, 2 KB\n-- 3 messages, 0 KB\n");
	buf_fini(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_one_line_with_its_latest_reason),
		cmocka_unit_test(json_is_one_object_a_line),
		cmocka_unit_test(json_has_null_for_what_is_not_known),
		cmocka_unit_test(sizes_and_times_have_a_unit),
		cmocka_unit_test(the_summary_counts),
	};
	return RUN(tests);
}
