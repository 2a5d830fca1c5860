/* SPDX-License-Identifier: ISC */
#include "tests/unit/dkim/unit.h"

#include "base/base64.h"
#include "dkim/canonical_body.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

static void append(void *owner, const char *bytes, size_t len)
{
	buf_append(owner, bytes, len);
}

static void expect_pieces(const char *body, bool relaxed, const char *wanted, size_t piece)
{
	struct canonical_body b;
	struct buf got = {0};
	size_t len = strlen(body);
	canonical_body_init(&b, relaxed, append, &got);
	for (size_t at = 0; at < len; at += piece)
		canonical_body_put(&b, body + at, len - at < piece ? len - at : piece);
	canonical_body_end(&b);
	assert_string_equal(buf_cstr(&got), wanted);
	buf_fini(&got);
}

static void expect(const char *body, const char *relaxed, const char *simple)
{
	for (size_t piece = 1; piece <= strlen(body) + 1; piece++) {
		expect_pieces(body, true, relaxed, piece);
		expect_pieces(body, false, simple, piece);
	}
}

static void the_example_of_rfc_6376_3_4_5(void **state)
{
	(void)state;
	expect(" C \r\nD \t E\r\n\r\n\r\n", " C\r\nD E\r\n", " C \r\nD \t E\r\n");
}

static void empty_bodies_differ_by_one_end_of_line(void **state)
{
	(void)state;
	expect("", "", "\r\n");
	expect("\r\n", "", "\r\n");
	expect("\r\n\r\n\r\n", "", "\r\n");
	expect(" \t\r\n \r\n", "", " \t\r\n \r\n");
	expect(" ", "", " \r\n");
}

static void a_last_line_without_end_gets_one(void **state)
{
	(void)state;
	expect("a", "a\r\n", "a\r\n");
	expect("a\r\n\r\nb", "a\r\n\r\nb\r\n", "a\r\n\r\nb\r\n");
	expect("a \r\n\r\n \t", "a\r\n", "a \r\n\r\n \t\r\n");
}

static void blanks_are_one_or_none(void **state)
{
	(void)state;
	expect("  a\t \tb  \r\n\tc\r\n", " a b\r\n c\r\n", "  a\t \tb  \r\n\tc\r\n");
	expect("\r\n\r\na\r\n", "\r\n\r\na\r\n", "\r\n\r\na\r\n");
	expect(".\r\n..\r\n", ".\r\n..\r\n", ".\r\n..\r\n");
}

static void what_is_no_end_of_a_line_is_text(void **state)
{
	(void)state;
	expect("a\rb\nc\r", "a\rb\nc\r\r\n", "a\rb\nc\r\r\n");
	expect("a \r\r\n", "a \r\r\n", "a \r\r\n");
}

static void long_text_passes_through_as_it_is(void **state)
{
	(void)state;
	enum { LINES = 3000 };
	struct buf text = {0}, wanted = {0};
	for (int i = 0; i < LINES; i++) {
		buf_printf(&text, "%d  %0*d \r\n", i, i % 90, 0);
		buf_printf(&wanted, "%d %0*d\r\n", i, i % 90, 0);
	}
	expect_pieces(buf_cstr(&text), true, buf_cstr(&wanted), 1000);
	expect_pieces(buf_cstr(&text), true, buf_cstr(&wanted), buf_len(&text));
	expect_pieces(buf_cstr(&text), false, buf_cstr(&text), 4097);
	buf_fini(&text);
	buf_fini(&wanted);
}

static void digest(void *owner, const char *bytes, size_t len)
{
	EVP_DigestUpdate(owner, bytes, len);
}

static void expect_hash(const char *body, bool relaxed, const char *wanted)
{
	unsigned char hash[32];
	struct canonical_body b;
	struct buf text = {0};
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	EVP_DigestInit_ex(c, EVP_sha256(), NULL);
	canonical_body_init(&b, relaxed, digest, c);
	canonical_body_put(&b, body, strlen(body));
	canonical_body_end(&b);
	EVP_DigestFinal_ex(c, hash, NULL);
	EVP_MD_CTX_free(c);
	base64_encode(&text, hash, sizeof hash);
	assert_string_equal(buf_cstr(&text), wanted);
	buf_fini(&text);
}

static void hashes_are_those_of_the_rfcs(void **state)
{
	(void)state;
	expect_hash("", false, "frcCV1k9oG9oKj3dpUqdJg1PxRT2RSN/XKdLCPjaYaY=");
	expect_hash("", true, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
	/* RFC 8463 A.2 */
	expect_hash("Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n", true,
		    "2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=");
}

/* Byte by byte, as RFC 6376 3.4.3 and 3.4.4 say it. */
static void canonical(const char *body, bool relaxed, struct buf *to)
{
	size_t text = 0; /* up to where there is more than ends of lines */
	for (const char *p = body; *p; p++) {
		bool blank = *p == ' ' || *p == '\t';
		const char *next = p + strspn(p, " \t");
		if (relaxed && blank && p > body && (p[-1] == ' ' || p[-1] == '\t'))
			continue;
		if (relaxed && blank && (strncmp(next, "\r\n", 2) == 0 || !*next))
			continue;
		if (strncmp(p, "\r\n", 2) == 0) {
			buf_puts(to, "\r\n");
			p++;
			continue;
		}
		buf_append(to, relaxed && blank ? " " : p, 1);
		text = buf_len(to);
	}
	to->tail = to->head + text;
	if (text > 0 || !relaxed)
		buf_puts(to, "\r\n");
}

static void any_body_is_as_the_rule_has_it_however_it_is_cut(void **state)
{
	static const char *const words[] = {"a",
					    "word",
					    " ",
					    "  ",
					    "\t",
					    "\r\n",
					    "\r\n",
					    "\r\n\r\n",
					    "a whole line of words\r\n",
					    "two\r\nlines\r\n",
					    "\r",
					    "\n"};
	struct buf body = {0}, wanted = {0};
	unsigned seed = 6376;
	(void)state;
	for (int i = 0; i < 20000; i++) {
		buf_clear(&body);
		for (int n = rand_r(&seed) % 12; n > 0; n--)
			buf_puts(&body,
				 words[(size_t)rand_r(&seed) % (sizeof words / sizeof *words)]);
		const char *text = buf_cstr(&body);
		for (int relaxed = 0; relaxed < 2; relaxed++) {
			buf_clear(&wanted);
			canonical(text, relaxed, &wanted);
			expect_pieces(text, relaxed, buf_cstr(&wanted), strlen(text) + 1);
			expect_pieces(text, relaxed, buf_cstr(&wanted),
				      1 + (size_t)rand_r(&seed) % 9);
		}
	}
	buf_fini(&body);
	buf_fini(&wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_example_of_rfc_6376_3_4_5),
		cmocka_unit_test(empty_bodies_differ_by_one_end_of_line),
		cmocka_unit_test(a_last_line_without_end_gets_one),
		cmocka_unit_test(blanks_are_one_or_none),
		cmocka_unit_test(what_is_no_end_of_a_line_is_text),
		cmocka_unit_test(long_text_passes_through_as_it_is),
		cmocka_unit_test(hashes_are_those_of_the_rfcs),
		cmocka_unit_test(any_body_is_as_the_rule_has_it_however_it_is_cut),
	};
	return RUN(tests);
}
