/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/clock.h"
#include "base/verdict.h"

#include <string.h>

static void without_an_enhanced_code_the_class_gives_one(void **state)
{
	(void)state;
	static const char *const expected[] = {"2.0.0", "4.0.0", "5.0.0", "4.0.0"};
	for (int class = VERDICT_SENT; class <= VERDICT_IN_DOUBT; class ++) {
		struct verdict *v = verdict_new((enum verdict_class) class, 0, NULL, NULL, "x");
		assert_string_equal(v->dsn, expected[class]);
		assert_string_equal(v->host, "");
		verdict_unref(v);
	}
}

static void an_enhanced_code_is_kept_if_it_is_one(void **state)
{
	(void)state;
	static const struct {
		const char *given, *kept;
	} codes[] = {{"5.1.2", "5.1.2"},    {"5.123.45", "5.123.45"}, {"5.1", "5.0.0"},
		     {"3.1.1", "5.0.0"},    {"5.1.1x", "5.0.0"},      {"", "5.0.0"},
		     {"5.1234.1", "5.0.0"}, {"5..1", "5.0.0"}};
	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
		struct verdict *v = verdict_new(VERDICT_FAILED, 550, codes[i].given, "h", "x");
		assert_string_equal(v->dsn, codes[i].kept);
		verdict_unref(v);
	}
}

static void controls_and_stray_bytes_become_question_marks(void **state)
{
	(void)state;
	struct verdict *v = verdict_new(VERDICT_DEFERRED, 451, NULL, "mx\r\n[1.2.3.4]:25",
					"a\rb\nc\x1b[31m\x7f \xc3\xa4 \xff \xc2\x85 \xe2\x82");
	assert_string_equal(v->host, "mx??[1.2.3.4]:25");
	assert_string_equal(v->text, "a?b?c?[31m? \xc3\xa4 ? ? ??");
	verdict_unref(v);
}

static void a_long_text_is_cut_between_two_characters(void **state)
{
	(void)state;
	char text[3000];
	for (size_t i = 0; i + 2 < sizeof text; i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	text[sizeof text - 1] = '\0';
	struct verdict *v = verdict_printf(VERDICT_FAILED, 550, NULL, text, "%s", text);
	assert_int_equal(strlen(v->text), VERDICT_TEXT_MAX / 3 * 3);
	assert_int_equal(strlen(v->host), VERDICT_HOST_MAX / 3 * 3);
	assert_int_equal((unsigned char)v->text[strlen(v->text) - 1], 0xac);
	verdict_unref(v);
}

static void a_verdict_lives_as_long_as_somebody_holds_it(void **state)
{
	(void)state;
	struct verdict *v = verdict_printf(VERDICT_SENT, 250, "2.1.5", "h", "%d ok", 1);
	assert_ptr_equal(verdict_ref(v), v);
	verdict_unref(v);
	assert_string_equal(v->text, "1 ok");
	verdict_unref(v);
	assert_null(verdict_ref(NULL));
	verdict_unref(NULL);
}

static void one_read_back_keeps_its_time(void **state)
{
	(void)state;
	struct verdict *v = verdict_at(VERDICT_SENT, 250, NULL, NULL, "ok", 12345);
	assert_int_equal(v->when_ms, 12345);
	verdict_unref(v);
	v = verdict_new(VERDICT_SENT, 250, NULL, NULL, "ok");
	assert_in_range(clock_wall_ms() - v->when_ms, 0, 60000);
	verdict_unref(v);
}

static void one_in_other_words_is_still_the_answer_to_its_command(void **state)
{
	(void)state;
	struct verdict *v =
		verdict_answering(VERDICT_AT_RCPT, VERDICT_FAILED, 550, "5.1.1", "mx", "no");
	struct verdict *other = verdict_reworded(v, VERDICT_DEFERRED, "4.1.1", "mx2", "not now");
	assert_int_equal(other->stage, VERDICT_AT_RCPT);
	assert_int_equal(other->class, VERDICT_DEFERRED);
	assert_int_equal(other->code, 550);
	assert_int_equal(other->when_ms, v->when_ms);
	assert_string_equal(other->dsn, "4.1.1");
	assert_string_equal(other->text, "not now");
	verdict_unref(other);
	verdict_unref(v);
}

static void the_classes_are_named_as_the_events_of_the_log(void **state)
{
	(void)state;
	assert_string_equal(verdict_class_name(VERDICT_SENT), "sent");
	assert_string_equal(verdict_class_name(VERDICT_DEFERRED), "deferred");
	assert_string_equal(verdict_class_name(VERDICT_FAILED), "bounced");
	assert_string_equal(verdict_class_name(VERDICT_IN_DOUBT), "in_doubt");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_an_enhanced_code_the_class_gives_one),
		cmocka_unit_test(an_enhanced_code_is_kept_if_it_is_one),
		cmocka_unit_test(controls_and_stray_bytes_become_question_marks),
		cmocka_unit_test(a_long_text_is_cut_between_two_characters),
		cmocka_unit_test(a_verdict_lives_as_long_as_somebody_holds_it),
		cmocka_unit_test(one_read_back_keeps_its_time),
		cmocka_unit_test(one_in_other_words_is_still_the_answer_to_its_command),
		cmocka_unit_test(the_classes_are_named_as_the_events_of_the_log),
	};
	return RUN(tests);
}
