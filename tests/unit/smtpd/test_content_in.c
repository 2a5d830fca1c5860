/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "smtpd/content_in.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 8192 };

struct result {
	char kept[MOST];
	size_t len, used;
	unsigned faults;
	uint64_t size;
	bool ended, refused;
};

static void keep(void *owner, const char *bytes, size_t len)
{
	struct result *r = owner;
	assert_true(len > 0 && r->len + len <= MOST);
	memcpy(r->kept + r->len, bytes, len);
	r->len += len;
}

/* The bytes before cut in one feed, those behind it in steps of so many. */
static void decode(struct result *r, const struct content_in *settings, const char *wire,
		   size_t len, size_t cut, size_t step)
{
	struct content_in c = *settings;
	memset(r, 0, sizeof *r);
	c.sink = keep;
	c.owner = r;
	while (r->used < len && !content_in_ended(&c)) {
		size_t n = r->used < cut ? cut - r->used : step;
		if (n > len - r->used)
			n = len - r->used;
		size_t took = content_in_feed(&c, wire + r->used, n);
		assert_true(took == n || content_in_ended(&c));
		r->used += took;
	}
	r->ended = content_in_ended(&c);
	r->refused = content_in_refused(&c);
	r->faults = c.faults;
	r->size = c.size;
}

static void assert_same(const struct result *a, const struct result *b)
{
	assert_int_equal(a->used, b->used);
	assert_int_equal(a->ended, b->ended);
	assert_int_equal(a->faults, b->faults);
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->refused, b->refused);
	if (!a->refused) {
		assert_int_equal(a->len, b->len);
		assert_memory_equal(a->kept, b->kept, a->len);
	}
}

/* However the bytes are split, the outcome is that of one feed. A message that is refused may have
 * been kept up to another place: it is thrown away. */
static void decode_all_ways(struct result *r, const struct content_in *settings, const char *wire,
			    size_t len)
{
	struct result other;
	decode(r, settings, wire, len, len, 1);
	for (size_t cut = 0; cut <= len; cut++) {
		for (size_t step = 1; step <= 5; step += 2) {
			decode(&other, settings, wire, len, cut, step);
			assert_same(r, &other);
		}
	}
}

static const struct content_in data = {.dots = true};
static const struct content_in data_normalised = {.dots = true, .normalise = true};

#define WIRE(text) text, sizeof text - 1

static void only_crlf_dot_crlf_ends_a_message(void **state)
{
	(void)state;
	static const struct {
		const char *fake;
		size_t len;
	} fakes[] = {
		{WIRE("\n.\n")},       {WIRE("\n.\r\n")},     {WIRE("\r\n.\n")},
		{WIRE("\r.\r")},       {WIRE("\r.\n")},	      {WIRE("\n.\r")},
		{WIRE("\r.\r\n")},     {WIRE("\r\n.\r")},     {WIRE("\r\n\0.\r\n")},
		{WIRE("\r\n.\0\r\n")}, {WIRE("\r\n.\r\r\n")}, {WIRE("\r\r\n.\r\r\n")},
	};
	static const char more[] = "MAIL FROM:<x@y.test>\r\nDATA\r\nsecond\r\n.\r\n";
	for (size_t i = 0; i < sizeof fakes / sizeof *fakes; i++) {
		char wire[200];
		size_t len = 5;
		struct result r;
		memcpy(wire, "first", 5);
		memcpy(wire + len, fakes[i].fake, fakes[i].len);
		len += fakes[i].len;
		memcpy(wire + len, more, sizeof more - 1);
		len += sizeof more - 1;
		decode_all_ways(&r, &data, wire, len);
		assert_true(r.ended);
		assert_int_equal(r.used, len);
		assert_true(r.faults & (CONTENT_BARE_CR | CONTENT_BARE_LF | CONTENT_NUL));
		decode_all_ways(&r, &data_normalised, wire, len);
		assert_true(r.ended);
		assert_int_equal(r.used, len);
		for (size_t k = 0; k < r.len; k++) {
			assert_true(r.kept[k] != '\r' || r.kept[k + 1] == '\n');
			assert_true(r.kept[k] != '\n' || (k > 0 && r.kept[k - 1] == '\r'));
		}
	}
}

static void the_end_is_found_at_every_split(void **state)
{
	(void)state;
	static const char wire[] = "a: b\r\n\r\ntext\r\n.\r\nQUIT\r\n";
	struct result r;
	decode_all_ways(&r, &data, WIRE(wire));
	assert_true(r.ended);
	assert_int_equal(r.used, sizeof wire - 1 - 6);
	assert_int_equal(r.faults, 0);
	assert_int_equal(r.len, 14);
	assert_memory_equal(r.kept, "a: b\r\n\r\ntext\r\n", 14);
}

static void an_empty_message_is_one(void **state)
{
	(void)state;
	struct result r;
	decode_all_ways(&r, &data, WIRE(".\r\n"));
	assert_true(r.ended);
	assert_int_equal(r.len, 0);
	assert_int_equal(r.faults, 0);
}

static void one_dot_is_taken_off_each_line(void **state)
{
	(void)state;
	struct result r;
	decode_all_ways(&r, &data, WIRE("..\r\n..x\r\n.From: y\r\na.\r\n...\r\n.\r\n"));
	assert_true(r.ended);
	assert_int_equal(r.faults, 0);
	assert_int_equal(r.len, sizeof ".\r\n.x\r\nFrom: y\r\na.\r\n..\r\n" - 1);
	assert_memory_equal(r.kept, ".\r\n.x\r\nFrom: y\r\na.\r\n..\r\n", r.len);
}

static void normalised_line_ends_neither_end_nor_unstuff(void **state)
{
	(void)state;
	struct result r;
	decode_all_ways(&r, &data_normalised, WIRE("a\n.\r\n..b\rc\r\n.\r\n"));
	assert_true(r.ended);
	assert_int_equal(r.faults, CONTENT_BARE_CR | CONTENT_BARE_LF);
	assert_int_equal(r.len, sizeof "a\r\n.\r\n.b\r\nc\r\n" - 1);
	assert_memory_equal(r.kept, "a\r\n.\r\n.b\r\nc\r\n", r.len);
}

static void a_nul_is_refused_even_where_line_ends_are_not(void **state)
{
	(void)state;
	struct result r;
	decode_all_ways(&r, &data_normalised, WIRE("a\0b\r\n.\r\n"));
	assert_true(r.ended);
	assert_int_equal(r.faults, CONTENT_NUL);
	/* What lies behind the end is another's. */
	decode_all_ways(&r, &data, WIRE("a\r\n.\r\n\0"));
	assert_int_equal(r.faults, 0);
}

static void lines_are_long_at_the_limit_and_too_long_beyond(void **state)
{
	(void)state;
	struct content_in limited = data;
	struct result r;
	limited.line_limit = 10;
	decode_all_ways(&r, &limited, WIRE(".12345678\r\n12345678\r\n.\r\n"));
	assert_int_equal(r.faults, 0);
	decode_all_ways(&r, &limited, WIRE("123456789\r\n.\r\n"));
	assert_true(r.ended);
	assert_int_equal(r.faults, CONTENT_LONG_LINE);
}

static void the_size_is_counted_without_stuffed_dots(void **state)
{
	(void)state;
	struct content_in limited = data;
	struct result r;
	limited.size_limit = 6;
	decode_all_ways(&r, &limited, WIRE("..ab\r\n\r\n.\r\n"));
	assert_int_equal(r.faults, CONTENT_TOO_LARGE);
	assert_int_equal(r.size, 7);
	decode_all_ways(&r, &limited, WIRE("..ab\r\n.\r\n"));
	assert_int_equal(r.size, 5);
	assert_int_equal(r.faults, 0);
	/* A fake end behind a fault ends no more than before. */
	decode_all_ways(&r, &limited, WIRE("1234567\r\n.\nMAIL\r\n.\r\n"));
	assert_int_equal(r.used, 20);
}

static void chunks_have_no_dots_and_no_end(void **state)
{
	(void)state;
	struct content_in chunks = {.sink = keep};
	struct result r = {0};
	chunks.owner = &r;
	assert_int_equal(content_in_feed(&chunks, "a\r\n.\r\n..b\r", 10), 10);
	assert_int_equal(content_in_feed(&chunks, "\nlast", 5), 5);
	assert_false(content_in_ended(&chunks));
	content_in_finish(&chunks);
	assert_true(content_in_ended(&chunks));
	assert_int_equal(chunks.faults, 0);
	assert_int_equal(r.len, sizeof "a\r\n.\r\n..b\r\nlast" - 1);
	assert_memory_equal(r.kept, "a\r\n.\r\n..b\r\nlast", r.len);
}

static void a_chunk_that_ends_in_cr_is_refused_at_the_last(void **state)
{
	(void)state;
	struct content_in chunks = {.sink = keep};
	struct result r = {0};
	chunks.owner = &r;
	content_in_feed(&chunks, "a\r", 2);
	assert_int_equal(chunks.faults, 0);
	content_in_finish(&chunks);
	assert_int_equal(chunks.faults, CONTENT_BARE_CR);
}

/* Bytes that stand for something, in runs, which are read in one go where they come in one feed. */
static void whatever_comes_in_runs_is_read_as_if_byte_by_byte(void **state)
{
	static const char of[] = "\r\n.x\0\r\n";
	(void)state;
	for (unsigned seed = 1; seed <= 400; seed++) {
		char wire[64 + 8];
		size_t len = 0;
		unsigned dice = seed;
		while (len < 64) {
			dice = dice * 1103515245 + 12345;
			size_t n = dice >> 16 & 3 ? 1 : (dice >> 18 & 15) + 1;
			memset(wire + len, of[dice >> 24 & 7], n < 64 - len ? n : 64 - len);
			len += n < 64 - len ? n : 64 - len;
		}
		struct result r;
		struct content_in settings = {
			.dots = seed & 1, .normalise = seed & 2, .line_limit = seed & 4 ? 10 : 0};
		decode_all_ways(&r, &settings, wire, len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_crlf_dot_crlf_ends_a_message),
		cmocka_unit_test(the_end_is_found_at_every_split),
		cmocka_unit_test(an_empty_message_is_one),
		cmocka_unit_test(one_dot_is_taken_off_each_line),
		cmocka_unit_test(normalised_line_ends_neither_end_nor_unstuff),
		cmocka_unit_test(a_nul_is_refused_even_where_line_ends_are_not),
		cmocka_unit_test(lines_are_long_at_the_limit_and_too_long_beyond),
		cmocka_unit_test(the_size_is_counted_without_stuffed_dots),
		cmocka_unit_test(chunks_have_no_dots_and_no_end),
		cmocka_unit_test(a_chunk_that_ends_in_cr_is_refused_at_the_last),
		cmocka_unit_test(whatever_comes_in_runs_is_read_as_if_byte_by_byte),
	};
	return RUN(tests);
}
