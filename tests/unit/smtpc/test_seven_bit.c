/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/mem.h"
#include "base/mem.h"
#include "smtpc/seven_bit.h"

#include <stdlib.h>
#include <string.h>

#define U "\xc3\xbc"

static void expect_pieces(const char *content, const char *wanted, size_t piece)
{
	struct buf got = {0};
	struct seven_bit *s = seven_bit_new();
	size_t len = strlen(content);
	for (size_t at = 0; at < len; at += piece)
		seven_bit_put(s, content + at, len - at < piece ? len - at : piece, &got);
	seven_bit_end(s, &got);
	assert_string_equal(buf_cstr(&got), wanted);
	seven_bit_free(&s);
	buf_fini(&got);
}

static void expect(const char *content, const char *wanted)
{
	expect_pieces(content, wanted, strlen(content) + 1);
	expect_pieces(content, wanted, 1);
	expect_pieces(content, wanted, 7);
}

static void text_becomes_quoted_printable(void **state)
{
	(void)state;
	expect("Content-Type: text/plain; charset=utf-8\r\ncontent-transfer-encoding : "
	       "8BIT\r\n\r\n" U "=x \r\n\tend\t\r\n.\r\nno end",
	       "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: "
	       "quoted-printable\r\n\r\n=C3=BC=3Dx=20\r\n\tend=09\r\n.\r\nno end");
	/* 76 characters a line at most, and none of them cut in two. */
	expect("Content-Transfer-Encoding: 8bit\r\n\r\n"
	       "0123456789012345678901234567890123456789012345678901234567890123456789" U U "\r\n",
	       "Content-Transfer-Encoding: quoted-printable\r\n\r\n"
	       "0123456789012345678901234567890123456789012345678901234567890123456789=C3=\r\n"
	       "=BC=C3=BC\r\n");
}

static void other_parts_become_base64_without_the_end_that_is_the_boundarys(void **state)
{
	(void)state;
	expect("Content-Type: (a) multipart/mixed ; x=y; BOUNDARY=\"a \\b\"\r\n"
	       "Content-Transfer-Encoding: 8bit\r\n\r\n" U "\r\n--a b\r\n"
	       "Content-Type: application/x\r\nContent-Transfer-Encoding: binary\r\n\r\nab" U
	       "\r\nc\r\n--a b \r\n\r\n" U "\r\n--a bc\r\n--a b--\r\n" U,
	       "Content-Type: (a) multipart/mixed ; x=y; BOUNDARY=\"a \\b\"\r\n"
	       "Content-Transfer-Encoding: 7bit\r\n\r\n" U "\r\n--a b\r\n"
	       "Content-Type: application/x\r\nContent-Transfer-Encoding: base64\r\n\r\n"
	       "YWLDvA0KYw==\r\n--a b \r\n\r\n" U "\r\n--a bc\r\n--a b--\r\n" U);
}

static void messages_within_are_gone_into_and_what_is_signed_is_not(void **state)
{
	(void)state;
	expect("Content-Type: multipart/mixed; boundary=o\r\n\r\n--o\r\n"
	       "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
	       "Subject: in\r\nContent-Transfer-Encoding: 8bit\r\n\r\n" U "\r\n--o\r\n"
	       "Content-Type: multipart/signed; boundary=s\r\nContent-Transfer-Encoding: "
	       "8bit\r\n\r\n"
	       "--s\r\nContent-Transfer-Encoding: 8bit\r\n\r\n" U "\r\n--s--\r\n--o\r\n"
	       "Content-Type: message/delivery-status\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
	       "A: b\r\n--o\r\nContent-Transfer-Encoding: 8bit\r\n\r\n" U "\r\n--o--\r\n",
	       "Content-Type: multipart/mixed; boundary=o\r\n\r\n--o\r\n"
	       "Content-Type: message/rfc822\r\nContent-Transfer-Encoding: 7bit\r\n\r\n"
	       "Subject: in\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=C3=BC\r\n--o\r\n"
	       "Content-Type: multipart/signed; boundary=s\r\nContent-Transfer-Encoding: "
	       "8bit\r\n\r\n"
	       "--s\r\nContent-Transfer-Encoding: 8bit\r\n\r\n" U "\r\n--s--\r\n--o\r\n"
	       "Content-Type: message/delivery-status\r\nContent-Transfer-Encoding: 7bit\r\n\r\n"
	       "A: b\r\n--o\r\nContent-Transfer-Encoding: "
	       "quoted-printable\r\n\r\n=C3=BC\r\n--o--\r\n");
}

static void what_is_international_by_its_type_is_encoded_as_a_whole(void **state)
{
	(void)state;
	expect("Content-Type: multipart/report; boundary=o\r\nContent-Transfer-Encoding: "
	       "8bit\r\n\r\n--o\r\n"
	       "Content-Type: message/global-delivery-status\r\nContent-Transfer-Encoding: "
	       "8bit\r\n\r\n"
	       "Final-Recipient: utf-8;" U "@a\r\n--o\r\n"
	       "Content-Type: message/global\r\nContent-Transfer-Encoding: 8bit\r\n\r\n"
	       "Subject: " U "\r\nContent-Transfer-Encoding: 8bit\r\n\r\n" U "\r\n--o--\r\n",
	       "Content-Type: multipart/report; boundary=o\r\nContent-Transfer-Encoding: "
	       "7bit\r\n\r\n--o\r\n"
	       "Content-Type: message/global-delivery-status\r\nContent-Transfer-Encoding: "
	       "quoted-printable\r\n\r\n"
	       "Final-Recipient: utf-8;=C3=BC@a\r\n--o\r\n"
	       "Content-Type: message/global\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
	       "Subject: =C3=BC\r\nContent-Transfer-Encoding: 8bit\r\n\r\n=C3=BC\r\n--o--\r\n");
}

static void what_can_not_be_made_out_stays(void **state)
{
	(void)state;
	static const char *const same[] = {
		"Content-Transfer-Encoding: 8bit\r\n" U,
		"Content-Transfer-Encoding: 7bit\r\n\r\n" U "\r\n",
		"Subject: x\r\n\r\n" U,
		"",
		"\r\n" U "\r\n",
		"Content-Type: text/plain\r\nContent-Transfer-Encoding: "
		"quoted-printable\r\n\r\n=41\r\n",
	};
	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		expect(same[i], same[i]);
}

static bool may(const char *content)
{
	struct content *c = content_in_memory(mem_strdup(content), strlen(content));
	bool is = seven_bit_may(c);
	content_unref(c);
	return is;
}

/* Before it all is converted, behind it nothing. */
static void a_header_that_is_too_long_passes_with_all_that_follows(void **state)
{
	static const char begins[] = "Content-Type: multipart/mixed; boundary=o\r\n\r\n--o\r\n"
				     "Content-Transfer-Encoding: ";
	static const char follows[] = "\r\n--o\r\nContent-Transfer-Encoding: 8bit\r\nX: ",
			  rest[] = "\r\n\r\n" U "\r\n--o\r\n"
				   "Content-Transfer-Encoding: 8bit\r\n\r\n" U "\r\n--o--\r\n";
	char *x = mem_zalloc(SEVEN_BIT_HEADER_MAX + 1);
	(void)state;
	memset(x, 'x', SEVEN_BIT_HEADER_MAX);
	char *content = mem_printf("%s8bit\r\n\r\n" U "%s%s%s", begins, follows, x, rest);
	char *wanted =
		mem_printf("%squoted-printable\r\n\r\n=C3=BC%s%s%s", begins, follows, x, rest);
	expect(content, wanted);
	free(content);
	free(wanted);
	free(x);
}

static void a_signature_or_no_mime_forbids_it(void **state)
{
	(void)state;
	assert_true(may("mime-version: 1.0\r\nSubject: x\r\n\r\n" U));
	assert_false(may("Subject: x\r\n\r\n" U));
	assert_false(may("MIME-Version: 1.0\r\nDKIM-Signature: x\r\n\r\n" U));
	assert_false(may("MIME-Version: 1.0\r\nARC-Message-Signature: x\r\n\r\n" U));
	assert_false(may("MIME-Version: 1.0\r\nno field\r\n\r\n" U));
	assert_false(may("MIME-Version: 1.0\r\n"));
	assert_false(
		may("MIME-Version: 1.0\r\nContent-Type:\r\n multipart/Signed; boundary=x\r\n\r\n"));
}

/* A blank at the end of a piece might be the last of its line: the pieces must not depend on how the content comes. */
static void a_long_line_becomes_the_same_whatever_it_comes_in(void **state)
{
	(void)state;
	struct buf text = {0}, whole = {0};
	buf_puts(&text, "Content-Transfer-Encoding: 8bit\r\n\r\n" U);
	for (int i = 0; i < 3000; i++)
		buf_puts(&text, i % 97 ? " " : "\r");
	buf_puts(&text, "end\r\n");
	struct seven_bit *s = seven_bit_new();
	seven_bit_put(s, buf_data(&text), buf_len(&text), &whole);
	seven_bit_end(s, &whole);
	seven_bit_free(&s);
	for (size_t piece = 1; piece < 1500; piece += 13)
		expect_pieces(buf_cstr(&text), buf_cstr(&whole), piece);
	buf_fini(&text);
	buf_fini(&whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_becomes_quoted_printable),
		cmocka_unit_test(other_parts_become_base64_without_the_end_that_is_the_boundarys),
		cmocka_unit_test(messages_within_are_gone_into_and_what_is_signed_is_not),
		cmocka_unit_test(what_is_international_by_its_type_is_encoded_as_a_whole),
		cmocka_unit_test(what_can_not_be_made_out_stays),
		cmocka_unit_test(a_long_line_becomes_the_same_whatever_it_comes_in),
		cmocka_unit_test(a_header_that_is_too_long_passes_with_all_that_follows),
		cmocka_unit_test(a_signature_or_no_mime_forbids_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
