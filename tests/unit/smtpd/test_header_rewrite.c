/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "base/mem.h"
#include "smtpd/header_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct buf kept;

static void keep(void *owner, const char *bytes, size_t len)
{
	(void)owner;
	buf_append(&kept, bytes, len);
}

/* s@old becomes S@new as a sender, R@new as a recipient; all else stays. */
static char *become(void *owner, enum header_class class, const char *address, size_t len)
{
	(void)owner;
	if (len < 4 || memcmp(address + len - 4, "@old", 4) != 0)
		return NULL;
	return mem_printf("%c%.*s@newer", class == HEADER_SENDER ? 'S' : 'R', (int)len - 4,
			  address);
}

static void read_message(const char *text, size_t step)
{
	struct header_in h = {.sink = keep, .become = become};
	size_t len = strlen(text);
	buf_clear(&kept);
	for (size_t at = 0; at < len; at += step)
		header_in_feed(&h, text + at, step < len - at ? step : len - at);
	header_in_finish(&h);
	header_in_fini(&h);
}

/* Whatever the pieces are that it comes in. */
static void becomes(const char *text, const char *expected)
{
	for (size_t step = 1; step <= strlen(text); step++) {
		read_message(text, step);
		assert_string_equal(buf_cstr(&kept), expected);
	}
}

static void senders_and_recipients_are_told_apart(void **state)
{
	(void)state;
	becomes("From: a@old\r\nsender: b@old\r\nReply-To :c@old\r\nRESENT-FROM: d@old\r\n"
		"To: e@old\r\nCc: f@old\r\nBcc: g@old\r\nResent-To: h@old\r\n\r\nFrom: i@old\r\n",
		"From: Sa@newer\r\nsender: Sb@newer\r\nReply-To :Sc@newer\r\nRESENT-FROM: "
		"Sd@newer\r\n"
		"To: Re@newer\r\nCc: Rf@newer\r\nBcc: Rg@newer\r\nResent-To: Rh@newer\r\n\r\nFrom: "
		"i@old\r\n");
}

static void other_fields_stay(void **state)
{
	(void)state;
	static const char text[] = "Subject: a@old\r\n b@old\r\nX-To: c@old\r\nFromage: d@old\r\n"
				   "Resent-Message-ID: <e@old>\r\nReceived: from f@old\r\n\r\n";
	becomes(text, text);
}

static void all_but_the_addresses_stays(void **state)
{
	(void)state;
	becomes("To: \"Doe, J. <x@old>\" <a@old>,\r\n\t  b@old (\"work\" <c@old>, (nested\\) ) , "
		"),\r\n"
		" Team: d@old, e@other;, f@old\r\nDate: x\r\n",
		"To: \"Doe, J. <x@old>\" <Ra@newer>,\r\n\t  Rb@newer (\"work\" <c@old>, (nested\\) "
		") , ),\r\n"
		" Team: Rd@newer, e@other;, Rf@newer\r\nDate: x\r\n");
}

static void a_route_and_a_quoted_local_part_are_understood(void **state)
{
	(void)state;
	becomes("To: <@one,@two:a@old>, \"b c\"@old, d@[192.0.2.1], <>\r\n\r\n",
		"To: <@one,@two:Ra@newer>, R\"b c\"@newer, d@[192.0.2.1], <>\r\n\r\n");
}

static void what_is_not_in_one_piece_stays(void **state)
{
	(void)state;
	static const char text[] = "To: a @old, b@ old, c(x)@old, word d@old, \"e\r\n\r\n";
	becomes(text, text);
}

static void a_field_that_ends_anywhere_stays_whole(void **state)
{
	(void)state;
	static const char text[] = "To: \"Q\\\" z\" <ab@x.test>, (c\\) (d)) [e] e@[f] ;\r\n";
	char cut[sizeof text];
	for (size_t len = 0; len < sizeof text; len++) {
		snprintf(cut, sizeof cut, "%.*s", (int)len, text);
		read_message(cut, 7);
		assert_string_equal(buf_cstr(&kept), cut);
	}
}

/* "To: " and so many addresses, one a line. */
static char *long_field(int addresses, const char *address, size_t *len)
{
	struct buf b;
	buf_init(&b);
	buf_puts(&b, "To: x@other");
	for (int i = 0; i < addresses; i++)
		buf_printf(&b, ",\r\n %s", address);
	buf_puts(&b, "\r\n\r\n");
	return buf_steal(&b, len);
}

static void a_long_field_is_rewritten_and_a_longer_one_passes(void **state)
{
	(void)state;
	size_t len;
	for (int n = 100; n <= 10000; n *= 10) {
		char *text = long_field(n, "somebody@old", &len);
		char *rewritten = long_field(n, "Rsomebody@newer", &len);
		read_message(text, 1000);
		assert_string_equal(buf_cstr(&kept), n < 10000 ? rewritten : text);
		free(text);
		free(rewritten);
	}
}

static void a_line_of_any_length_is_rewritten(void **state)
{
	(void)state;
	char name[3001];
	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	char *text = mem_printf("From: \"%s\" <a@old>\r\n\r\n", name);
	char *expected = mem_printf("From: \"%s\" <Sa@newer>\r\n\r\n", name);
	for (size_t step = 1; step < 3000; step += 97) {
		read_message(text, step);
		assert_string_equal(buf_cstr(&kept), expected);
	}
	free(text);
	free(expected);
}

static int tidy(void **state)
{
	(void)state;
	buf_fini(&kept);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(senders_and_recipients_are_told_apart),
		cmocka_unit_test(other_fields_stay),
		cmocka_unit_test(all_but_the_addresses_stays),
		cmocka_unit_test(a_route_and_a_quoted_local_part_are_understood),
		cmocka_unit_test(what_is_not_in_one_piece_stays),
		cmocka_unit_test(a_field_that_ends_anywhere_stays_whole),
		cmocka_unit_test(a_long_field_is_rewritten_and_a_longer_one_passes),
		cmocka_unit_test(a_line_of_any_length_is_rewritten),
	};
	return cmocka_run_group_tests(tests, NULL, tidy);
}
