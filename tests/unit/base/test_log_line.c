/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/log_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum log_format forms[] = {LOG_TEXT, LOG_JSON, LOG_POSTFIX};
#define WORD(key, text)                                                                            \
	{                                                                                          \
		key, text, sizeof(text) - 1, false                                                 \
	}
#define NUMBER(key, text)                                                                          \
	{                                                                                          \
		key, text, sizeof(text) - 1, true                                                  \
	}
enum { WHEN_S = 1767323045 }; /* 2026-01-02T03:04:05Z */

/* Write the record in that form, and read its last line but so many. */
static void write_and_read(struct buf *text, enum log_format form, const struct log_record *r,
			   int before_last, struct log_line *l)
{
	buf_clear(text);
	if (form == LOG_TEXT)
		log_format_text(text, r);
	else if (form == LOG_JSON)
		log_format_json(text, r);
	else
		log_format_postfix(text, r);
	char *line = buf_cstr(text), *end = line + buf_len(text) - 1;
	for (; form == LOG_POSTFIX && before_last > 0; before_last--)
		end = memrchr(line, '\n', (size_t)(end - line));
	char *last = memrchr(line, '\n', (size_t)(end - line));
	line = last ? last + 1 : line;
	assert_true(log_line_read(l, line, (size_t)(end - line), (int64_t)WHEN_S * 1000 + 3000));
}

static void assert_field(const struct log_line *l, const char *key, const char *value)
{
	struct buf text = {0};
	const struct log_field *f = log_line_find(l, key);
	assert_non_null(f);
	log_field_put(f, &text);
	assert_string_equal(buf_cstr(&text), value);
	buf_fini(&text);
}

static void what_was_written_is_read_in_each_form(void **state)
{
	(void)state;
	static const struct log_record sent = {
		.level = LOG_LEVEL_INFO,
		.event = "sent",
		.wall_ms = (int64_t)WHEN_S * 1000,
		.npair = 7,
		.pair = {WORD("id", "0ID"), WORD("to", "a b>@c.d"),
			 WORD("relay", "mx.c.d[192.0.2.1]:25"), NUMBER("delay", "1.5"),
			 WORD("delays", "1/0/0/0.5"), WORD("dsn", "2.0.0"),
			 WORD("reply", "250 2.0.0 \"a\\b\", = (so) to say")}};
	struct buf text = {0};
	struct log_line l;
	for (int form = 0; form < 3; form++) {
		write_and_read(&text, forms[form], &sent, 0, &l);
		assert_true(log_line_is(&l, "sent"));
		assert_int_equal(l.wall_ms, sent.wall_ms);
		for (int i = 0; i < sent.npair; i++)
			assert_field(&l, sent.pair[i].key, sent.pair[i].value);
	}
	buf_fini(&text);
}

static void a_queued_message_has_three_lines_of_postfix(void **state)
{
	(void)state;
	static const struct log_record queued = {
		.level = LOG_LEVEL_INFO,
		.event = "queued",
		.wall_ms = (int64_t)WHEN_S * 1000,
		.npair = 6,
		.pair = {WORD("id", "0ID"), WORD("client", "192.0.2.1"), WORD("user", "ann"),
			 WORD("from", ""), NUMBER("size", "7"), WORD("message_id", "<x@y>")}};
	struct buf text = {0};
	struct log_line l;
	for (int before_last = 0; before_last < 3; before_last++) {
		write_and_read(&text, LOG_POSTFIX, &queued, before_last, &l);
		assert_true(log_line_is(&l, "queued"));
		assert_field(&l, "id", "0ID");
		if (before_last == 0)
			assert_field(&l, "from", "");
		else if (before_last == 1)
			assert_field(&l, "message_id", "<x@y>");
		else
			assert_field(&l, "client", "192.0.2.1");
	}
	assert_field(&l, "user", "ann");
	write_and_read(&text, LOG_TEXT, &queued, 0, &l);
	assert_field(&l, "from", "");
	assert_field(&l, "message_id", "<x@y>");
	buf_fini(&text);
}

/* Each row of the table, with a value of its own for each key, is read as what it was written from. */
static void each_event_that_postfix_has_words_for_is_read_again(void **state)
{
	(void)state;
	static const struct {
		const char *event, *key, *value;
	} rows[] = {
		{"connect", "client", "mx.a.b[192.0.2.1]"},
		{"disconnect", "client", "[::1]"},
		{"reject", "to", "who@a.b"},
		{"reject", "reason", "Not; from=<x> here"},
		{"auth", "login", "ann"},
		{"discard", "to", "who@a.b"},
		{"discard", "reason", "milter b; c"},
		{"discard", "reason", "no recipient is left"},
		{"queued", "report_of", "0OF"},
		{"deferred", "reply", "451 4.2.1 (later)"},
		{"bounced", "reply", "550 no"},
		{"done", "id", "0ID"},
		{"host", "reason", "a b=c d"},
	};
	struct buf text = {0};
	struct log_line l;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct log_record r = {
			.level = LOG_LEVEL_WARNING,
			.event = rows[i].event,
			.wall_ms = (int64_t)WHEN_S * 1000,
			.npair = 2,
			.pair = {{rows[i].key, rows[i].value, strlen(rows[i].value), false},
				 WORD("result", "failed")}};
		for (int form = 0; form < 3; form++) {
			bool report = strcmp(rows[i].key, "report_of") == 0;
			write_and_read(&text, forms[form], &r, report ? 2 : 0, &l);
			assert_true(log_line_is(&l, rows[i].event));
			if (form < 2 || (!strchr(rows[i].value, '=') && rows[i].value[0] != '['))
				assert_field(&l, rows[i].key, rows[i].value);
		}
	}
	buf_fini(&text);
}

/* As other programs write JSON, who pass logs on. */
static void characters_in_digits_are_read_as_such(void **state)
{
	(void)state;
	static const char *const values[][2] = {
		{"\\u0041", "A"},
		{"\\u00fc\\u07ff", "\xc3\xbc\xdf\xbf"},
		{"\\u20AC", "\xe2\x82\xac"},
		{"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
		{"\\ud83d-", "\xef\xbf\xbd-"},
		{"\\ude00\\u0020", "\xef\xbf\xbd "},
		{"\\u-001", ""},
	};
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		char line[200];
		struct log_line l;
		snprintf(line, sizeof line,
			 "{\"time\":\"2026-01-02T03:04:05.678Z\",\"event\":\"e\",\"k\":\"%s\"}",
			 values[i][0]);
		assert_true(log_line_read(&l, line, strlen(line), (int64_t)WHEN_S * 1000));
		assert_field(&l, "k", values[i][1]);
	}
}

static void what_is_quoted_is_read_as_it_was(void **state)
{
	(void)state;
	static const char *const values[] = {
		"",
		"two words",
		"a\"b\\c\"",
		"x=y",
		"one\r\ntwo\t",
		"\\x41",
		"\xc3\xa4 \xe2\x82\xac",
		"ends in \\",
		"\x1b[2J\x7f",
	};
	struct buf text = {0};
	struct log_line l;
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		struct log_record r = {
			.level = LOG_LEVEL_ERROR,
			.event = "e",
			.wall_ms = (int64_t)WHEN_S * 1000 + 678,
			.npair = 2,
			.pair = {{"k", values[i], strlen(values[i]), false}, WORD("last", "one")}};
		for (int form = 0; form < 2; form++) {
			write_and_read(&text, forms[form], &r, 0, &l);
			assert_int_equal(l.wall_ms, r.wall_ms);
			assert_field(&l, "k", values[i]);
			assert_field(&l, "last", "one");
		}
	}
	buf_fini(&text);
}

static bool reads(const char *line, struct log_line *l)
{
	return log_line_read(l, line, strlen(line), (int64_t)WHEN_S * 1000);
}

static void syslogd_puts_a_head_before_each_form(void **state)
{
	(void)state;
	struct log_line l;
	assert_true(reads("Jan  2 03:00:00 host sluice[12]: info done id=0ID age=1", &l));
	assert_field(&l, "age", "1");
	assert_int_equal(l.wall_ms, ((int64_t)WHEN_S - 245) * 1000);
	assert_true(reads("2026-01-02T04:04:05.25+01:00 host sluice/qmgr[12]: 0ID: removed", &l));
	assert_int_equal(l.wall_ms, (int64_t)WHEN_S * 1000 + 250);
	assert_true(log_line_is(&l, "done"));
	assert_true(
		reads("2026-01-02T03:04:05Z host sluice[1]: {\"time\":\"2026-01-02T03:04:05.001Z\","
		      "\"level\":\"info\",\"event\":\"done\",\"id\":\"0ID\"}",
		      &l));
	assert_int_equal(l.wall_ms, (int64_t)WHEN_S * 1000 + 1);
	assert_field(&l, "id", "0ID");
}

static void a_time_without_a_year_is_the_last_such(void **state)
{
	(void)state;
	struct log_line l;
	assert_true(reads("Dec 31 23:00:00 host sluice/qmgr[1]: 0ID: removed", &l));
	assert_int_equal(l.wall_ms, ((int64_t)WHEN_S - 245 - 28 * 3600) * 1000);
	assert_true(reads("Jan  3 02:00:00 host sluice/qmgr[1]: 0ID: removed", &l));
	assert_int_equal(l.wall_ms, ((int64_t)WHEN_S - 245 + 23 * 3600) * 1000);
}

static void what_is_none_of_ours_is_left_out(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"",
		"{",
		"{}",
		"{\"time\":\"yesterday\",\"event\":\"done\"}",
		"2026-01-02T03:04:05.678Z",
		"2026-01-02T03:04:05.678Z info",
		"2026-01-02T03:04:05.678Z info sent id=\"cut",
		"{\"time\":\"2026-01-02T03:04:05.678Z\",\"event\":\"done\",\"id\":\"0I",
		"Jan  2 03:04:05 host postfix/qmgr[1]: 0ID: removed",
		"Jan  2 03:04:05 host",
		"Jan  2 03:04:05 host sluice",
		"Foo  2 03:04:05 host sluice[1]: info done id=1",
		"Jan  2 03:04:05 ",
		"sluice: can't open the log",
	};
	struct log_line l;
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		assert_false(reads(lines[i], &l));
}

/* A file of syslogd's has what any program says: names are printed as they are, to terminals and in JSON. */
static void a_name_with_odd_bytes_is_none_of_ours(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"2026-01-02T03:04:05Z info a\x1b[2J id=1",
		"2026-01-02T03:04:05Z info \"done id=1",
		"2026-01-02T03:04:05Z info done k\x1b[2J=1",
		"2026-01-02T03:04:05Z info done k\xc2\x9b=1",
		"2026-01-02T03:04:05Z info done k\"=1",
		"2026-01-02T03:04:05Z info done =1",
		"{\"time\":\"2026-01-02T03:04:05Z\",\"event\":\"a\x07\"}",
		"{\"time\":\"2026-01-02T03:04:05Z\",\"event\":\"\"}",
		"{\"time\":\"2026-01-02T03:04:05Z\",\"event\":\"a\",\"k\\u001b\":1}",
		"Jan  2 03:04:05 host sluice/relay[1]: warning: a\x1b[2J host=a",
	};
	struct log_line l;
	assert_true(reads("2026-01-02T03:04:05Z info mta-sts_2 k_2=1", &l));
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		assert_false(reads(lines[i], &l));
}

/* In memory that ends where the line does, for the sanitizer. */
static void read_cut(const char *line, size_t len)
{
	struct log_line l;
	struct buf value = {0};
	char *cut = malloc(len + 1);
	assert_non_null(cut);
	memcpy(cut + 1, line, len);
	cut[0] = '\n';
	if (log_line_read(&l, cut + 1, len, (int64_t)WHEN_S * 1000))
		for (int i = 0; i < l.n; i++)
			log_field_put(&l.field[i], &value);
	buf_fini(&value);
	free(cut);
}

static void a_line_may_be_cut_anywhere(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"2026-01-02T03:04:05.678Z info sent id=0ID to=\"a\\\"b\\x41\" reply=\"250 \\\\\"",
		"{\"time\":\"2026-01-02T03:04:05.678Z\",\"event\":\"sent\",\"n\":3,\"to\":"
		"\"\\u0041\\\"\"}",
		"Jan  2 03:04:05 host sluice/smtp[1]: 0ID: to=<a@b>, relay=none, delay=0, "
		"delays=0/0/0/0, dsn=2.0.0, status=sent (250 ok)",
		"Jan  2 03:04:05 host sluice/smtpd[1]: NOQUEUE: reject: RCPT from unknown[::1]: "
		"550 "
		"5.1.1 <a@b>: no; from=<> to=<a@b> proto=ESMTP helo=<x>",
		"Jan  2 03:04:05 host sluice/relay[1]: warning: host host=a state=out reason=b c=d",
		"2026-01-02T03:04:05+01:00 host sluice[1]: info done id=0ID age=1",
	};
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		for (size_t len = 0; len <= strlen(lines[i]); len++)
			read_cut(lines[i], len);
}

int main(void)
{
	setenv("TZ", "UTC", 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read_in_each_form),
		cmocka_unit_test(a_queued_message_has_three_lines_of_postfix),
		cmocka_unit_test(each_event_that_postfix_has_words_for_is_read_again),
		cmocka_unit_test(what_is_quoted_is_read_as_it_was),
		cmocka_unit_test(characters_in_digits_are_read_as_such),
		cmocka_unit_test(syslogd_puts_a_head_before_each_form),
		cmocka_unit_test(a_time_without_a_year_is_the_last_such),
		cmocka_unit_test(what_is_none_of_ours_is_left_out),
		cmocka_unit_test(a_name_with_odd_bytes_is_none_of_ours),
		cmocka_unit_test(a_line_may_be_cut_anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
