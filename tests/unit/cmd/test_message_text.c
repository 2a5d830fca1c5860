/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "cmd/maildrop/message_text.c"

static bool read_text(struct message_text *m, const char *text, bool dot_ends, uint64_t max)
{
	FILE *from = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	assert_non_null(from);
	message_text_init(m);
	bool ok = message_text_read(m, from, dot_ends, max);
	fclose(from);
	return ok;
}

static void expect_parts(const char *text, bool dot_ends, const char *header, const char *body)
{
	struct message_text m;
	assert_true(read_text(&m, text, dot_ends, 0));
	assert_string_equal(buf_cstr(&m.header), header);
	assert_string_equal(buf_cstr(&m.body), body);
	message_text_fini(&m);
}

static void lines_end_with_crlf_whatever_they_ended_with(void **state)
{
	(void)state;
	expect_parts("A: 1\nB: 2\r\n\nx\r\n\ny", false, "A: 1\r\nB: 2\r\n", "x\r\n\r\ny\r\n");
}

static void expect_bytes(const char *text, size_t len, const char *header, const char *body)
{
	struct message_text m;
	FILE *from = fmemopen((void *)(uintptr_t)text, len, "r");
	assert_non_null(from);
	message_text_init(&m);
	assert_true(message_text_read(&m, from, false, 0));
	fclose(from);
	assert_string_equal(buf_cstr(&m.header), header);
	assert_string_equal(buf_cstr(&m.body), body);
	message_text_fini(&m);
}

static void output_for_a_terminal_has_lines(void **state)
{
	static const char nul[] = "A: 1\n\nx\0y\0\n\0\nz";
	(void)state;
	expect_parts("A: 1\n\n10 %\r20 %\r\rdone\n.\r.\n", false, "A: 1\r\n",
		     "10 %\r\n20 %\r\n\r\ndone\r\n.\r\n.\r\n");
	expect_parts("A: 1\n\n\r10 %\r20 %\r", false, "A: 1\r\n", "\r\n10 %\r\n20 %\r\n");
	expect_parts("A: 1\r\r\nB: 2\r\r\n\r\r\nx\r\r\ny\r\r\n", false, "A: 1\r\nB: 2\r\n",
		     "x\r\ny\r\n");
	expect_parts("no header\rhere\n", false, "", "no header\r\nhere\r\n");
	expect_bytes(nul, sizeof nul - 1, "A: 1\r\n", "xy\r\n\r\nz\r\n");
}

static void no_field_begins_behind_a_cr(void **state)
{
	(void)state;
	struct message_text m;
	struct address_list to = {0};
	struct buf error;
	buf_init(&error);
	assert_true(read_text(&m, "To: a@b.test\nSubject: x\rBcc: c@d.test\n\ny\n", false, 0));
	assert_string_equal(buf_cstr(&m.header), "To: a@b.test\r\nSubject: x\rBcc: c@d.test\r\n");
	assert_true(message_text_recipients(&m, &to, &error));
	assert_int_equal(to.n, 1);
	address_list_free(&to);
	buf_fini(&error);
	message_text_fini(&m);
}

static void a_lone_dot_ends_only_when_asked(void **state)
{
	(void)state;
	expect_parts("A: 1\n\nx\n.\ny\n", true, "A: 1\r\n", "x\r\n");
	expect_parts("A: 1\n\nx\n.\ny\n", false, "A: 1\r\n", "x\r\n.\r\ny\r\n");
	expect_parts("A: 1\n\n..\n", true, "A: 1\r\n", "..\r\n");
}

static void what_is_no_field_begins_the_body(void **state)
{
	(void)state;
	expect_parts("no header here\nmore\n", false, "", "no header here\r\nmore\r\n");
	expect_parts("A: 1\nnot a field\n", false, "A: 1\r\n", "not a field\r\n");
	expect_parts(" folded nothing\n", false, "", " folded nothing\r\n");
	expect_parts("\nbody\n", false, "", "body\r\n");
}

static void the_line_of_a_mailbox_file_is_left_out(void **state)
{
	(void)state;
	expect_parts("From me Mon Jan 1\nA: 1\n\nx\n", false, "A: 1\r\n", "x\r\n");
}

static void more_than_the_limit_is_not_read(void **state)
{
	(void)state;
	struct message_text m;
	assert_false(read_text(&m, "A: 1\n\n0123456789\n0123456789\n", false, 20));
	assert_true(m.too_large);
	message_text_fini(&m);
}

enum { ENDLESS = 1 << 24 };

/* Standard input in which no line ends; it counts what was read. */
static ssize_t read_endless(void *cookie, char *to, size_t size)
{
	size_t *read = cookie, left = ENDLESS - *read;
	size = size < left ? size : left;
	memset(to, 'a', size);
	*read += size;
	return (ssize_t)size;
}

static void a_line_without_an_end_is_read_up_to_the_limit(void **state)
{
	(void)state;
	struct message_text m;
	size_t read = 0;
	FILE *from = fopencookie(&read, "r", (cookie_io_functions_t){.read = read_endless});
	assert_non_null(from);
	message_text_init(&m);
	assert_false(message_text_read(&m, from, false, 100000));
	assert_true(m.too_large);
	assert_true(read < 200000);
	message_text_fini(&m);
	fclose(from);
}

static void a_long_line_is_kept_whole(void **state)
{
	(void)state;
	struct message_text m;
	size_t read = ENDLESS - 10000;
	FILE *from = fopencookie(&read, "r", (cookie_io_functions_t){.read = read_endless});
	assert_non_null(from);
	message_text_init(&m);
	assert_true(message_text_read(&m, from, false, 10002));
	assert_int_equal(buf_len(&m.body), 10002);
	message_text_fini(&m);
	fclose(from);
}

static void expect_header(const char *text, const char *header)
{
	struct message_text m;
	assert_true(read_text(&m, text, false, 0));
	assert_string_equal(buf_cstr(&m.header), header);
	message_text_fini(&m);
}

static void a_long_line_of_the_header_is_folded_at_blanks(void **state)
{
	(void)state;
	char a[997], b[998], text[4096], folded[4096];
	memset(a, 'a', sizeof a - 1);
	memset(b, 'b', sizeof b - 1);
	a[sizeof a - 1] = b[sizeof b - 1] = '\0';
	snprintf(text, sizeof text, "S: %.995s\n\n", a); /* 998 */
	snprintf(folded, sizeof folded, "S: %.995s\r\n", a);
	expect_header(text, folded);
	snprintf(text, sizeof text, "S: %s \t c\n\n", a);
	snprintf(folded, sizeof folded, "S:\r\n %s \r\n\t c\r\n", a);
	expect_header(text, folded);
	snprintf(text, sizeof text, "S: 1 2 %s %s 3\n  %s%s c\n\n", a, b, b, b);
	snprintf(folded, sizeof folded, "S: 1 2\r\n %s\r\n %s\r\n 3\r\n  %s%s\r\n c\r\n", a, b, b,
		 b);
	expect_header(text, folded);
}

static void a_line_of_the_header_never_has_blanks_only(void **state)
{
	(void)state;
	char text[4096], folded[4096];
	snprintf(text, sizeof text, "S:a%2000s\n\n", "");
	snprintf(folded, sizeof folded, "S:a%2000s\r\n", "");
	expect_header(text, folded);
	snprintf(text, sizeof text, "S:a%2000s\n%2000s\n\n", "b", "c");
	snprintf(folded, sizeof folded, "S:a%995s\r\n%1005s\r\n%2000s\r\n", "", "b", "c");
	expect_header(text, folded);
}

static void expect_recipients(const char *text, const char *joined)
{
	struct message_text m;
	struct address_list list = {0};
	struct buf found, error;
	buf_init(&found);
	buf_init(&error);
	assert_true(read_text(&m, text, false, 0));
	assert_int_equal(message_text_recipients(&m, &list, &error), joined != NULL);
	for (int i = 0; i < list.n; i++)
		buf_printf(&found, "%s%s", i ? "|" : "", list.item[i]);
	if (joined)
		assert_string_equal(buf_cstr(&found), joined);
	address_list_free(&list);
	message_text_fini(&m);
	buf_fini(&found);
	buf_fini(&error);
}

static void recipients_are_those_of_three_fields(void **state)
{
	(void)state;
	expect_recipients("to: a@t\nCC: b@t,\n c@t\nX-To: no@t\nBcc: d@t\nTo: e@t\n\nTo: no@t\n",
			  "a@t|e@t|b@t|c@t|d@t");
	expect_recipients("To: a@t\nResent-Cc: r@t\nBcc: d@t\n", "r@t");
	expect_recipients("To: <a@t\n", NULL);
}

static void a_field_at_fault_is_cited_on_one_line(void **state)
{
	(void)state;
	struct message_text m;
	struct address_list list = {0};
	struct buf error;
	buf_init(&error);
	assert_true(read_text(&m, "To: a@t,\n\tb@t; \033[2Jc@t\n", false, 0));
	assert_false(message_text_recipients(&m, &list, &error));
	assert_string_equal(strchr(buf_cstr(&error), ',') + 2, "in To: a@t,   b@t;  [2Jc@t");
	address_list_free(&list);
	message_text_fini(&m);
	buf_fini(&error);
}

static void complete(struct message_text *m, const char *text)
{
	const struct message_author author = {"me@here.test", "Me \"X\"", "here.test"};
	assert_true(read_text(m, text, false, 0));
	message_text_complete(m, &author);
}

static void what_is_missing_is_added(void **state)
{
	(void)state;
	struct message_text m;
	complete(&m, "To: a@t\n\nx\n");
	const char *header = buf_cstr(&m.header);
	assert_ptr_equal(strstr(header, "To: a@t\r\n"), header);
	assert_non_null(strstr(header, "\r\nFrom: \"Me \\\"X\\\"\" <me@here.test>\r\n"));
	assert_non_null(strstr(header, "\r\nDate: "));
	assert_non_null(strstr(header, "\r\nMessage-ID: <"));
	assert_non_null(strstr(header, "@here.test>\r\n"));
	message_text_fini(&m);
}

static void expect_from(const char *name, const char *field)
{
	const struct message_author author = {"me@here.test", name, "here.test"};
	struct message_text m;
	assert_true(read_text(&m, "To: a@t\n\n", false, 0));
	message_text_complete(&m, &author);
	assert_non_null(strstr(buf_cstr(&m.header), field));
	message_text_fini(&m);
}

static void a_name_beyond_ascii_is_encoded(void **state)
{
	(void)state;
	expect_from("J\303\266rg \"J\"",
		    "\r\nFrom: =?utf-8?B?SsO2cmcgIkoi?=\r\n <me@here.test>\r\n");
	expect_from("J\366rg\n", "\r\nFrom: =?utf-8?B?Sj9yZz8=?=\r\n <me@here.test>\r\n");
	/* Words end between characters. */
	expect_from("01234567890123456789012345678901234567890123\303\266.",
		    "From: =?utf-8?B?"
		    "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM=?=\r\n"
		    " =?utf-8?B?w7Yu?=\r\n <me@here.test>\r\n");
}

static void what_is_there_stays_and_blind_copies_go(void **state)
{
	(void)state;
	struct message_text m;
	complete(&m, "Bcc: a@t,\n b@t\nfrom: x@t\nDATE: then\nMessage-Id: <1@t>\nbcc: c@t\n"
		     "Resent-Bcc: d@t\nBcc-Not: e@t\n\nBcc: body\n");
	assert_string_equal(buf_cstr(&m.header),
			    "from: x@t\r\nDATE: then\r\nMessage-Id: <1@t>\r\nBcc-Not: e@t\r\n");
	assert_string_equal(buf_cstr(&m.body), "Bcc: body\r\n");
	message_text_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_end_with_crlf_whatever_they_ended_with),
		cmocka_unit_test(output_for_a_terminal_has_lines),
		cmocka_unit_test(no_field_begins_behind_a_cr),
		cmocka_unit_test(a_lone_dot_ends_only_when_asked),
		cmocka_unit_test(what_is_no_field_begins_the_body),
		cmocka_unit_test(the_line_of_a_mailbox_file_is_left_out),
		cmocka_unit_test(more_than_the_limit_is_not_read),
		cmocka_unit_test(a_line_without_an_end_is_read_up_to_the_limit),
		cmocka_unit_test(a_long_line_is_kept_whole),
		cmocka_unit_test(a_long_line_of_the_header_is_folded_at_blanks),
		cmocka_unit_test(a_line_of_the_header_never_has_blanks_only),
		cmocka_unit_test(recipients_are_those_of_three_fields),
		cmocka_unit_test(a_field_at_fault_is_cited_on_one_line),
		cmocka_unit_test(what_is_missing_is_added),
		cmocka_unit_test(a_name_beyond_ascii_is_encoded),
		cmocka_unit_test(what_is_there_stays_and_blind_copies_go),
	};
	return RUN(tests);
}
