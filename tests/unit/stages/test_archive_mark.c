/* SPDX-License-Identifier: ISC */
#include "tests/unit/stages/unit.h"

#include "base/clock.h"
#include "base/ident.h"
#include "base/mem.h"
#include "stages/archive_mark.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DAY_MS = 24 * 60 * 60 * 1000 };

static char *made(const char *const *address, int n)
{
	struct envelope *e = envelope_new();
	struct buf text = {0};
	e->id = ident_new();
	for (int i = 0; i < n; i++)
		envelope_add(e, address[i]);
	assert_true(archive_mark_put(&text, e));
	envelope_free(&e);
	return buf_steal(&text, NULL);
}

static struct archive_marks read_in(const char *header)
{
	struct draft d;
	struct archive_marks m;
	draft_init(&d, NULL, 1);
	d.size = strlen(header);
	d.content = content_in_memory(mem_strdup(header), d.size);
	assert_true(draft_open(&d));
	archive_marks_read(&m, &d);
	draft_fini(&d);
	return m;
}

static bool has(const char *header, const char *address)
{
	struct archive_marks m = read_in(header);
	bool found = archive_marks_has(&m, address, clock_wall_ms(), DAY_MS);
	archive_marks_fini(&m);
	return found;
}

static void a_mark_is_known_again_for_its_addresses(void **state)
{
	(void)state;
	char *mark = made((const char *const[]){"journal@one.test", "Two@two.test"}, 2);
	char *header = mem_printf("From: <>\r\n%sTo: x\r\n\r\nbody\r\n", mark);
	assert_true(has(header, "journal@one.test"));
	assert_true(has(header, "two@two.test"));
	assert_false(has(header, "journal@three.test"));
	assert_false(has("From: x\r\n\r\n", "journal@one.test"));
	/* In the message that is attached it says nothing. */
	char *within = mem_printf("From: <>\r\n\r\n%s\r\n", mark);
	assert_false(has(within, "journal@one.test"));
	free(within);
	free(header);
	free(mark);
}

static void what_is_changed_or_too_old_is_none(void **state)
{
	(void)state;
	char *mark = made((const char *const[]){"j@one.test"}, 1);
	size_t len = strlen(mark);
	for (size_t i = strlen(ARCHIVE_MARK_FIELD); i < len - 2; i++) {
		char *other = mem_strdup(mark);
		other[i] = other[i] == '1' ? '2' : '1';
		assert_false(has(other, "j@one.test"));
		free(other);
	}
	struct archive_marks m = read_in(mark);
	int64_t now_ms = clock_wall_ms();
	assert_true(archive_marks_has(&m, "j@one.test", now_ms + DAY_MS / 2, DAY_MS));
	assert_false(archive_marks_has(&m, "j@one.test", now_ms + 2LL * DAY_MS, DAY_MS));
	archive_marks_fini(&m);
	free(mark);
}

static void marks_of_others_are_handed_on_and_nothing_else(void **state)
{
	(void)state;
	static const char mark[] = ARCHIVE_MARK_FIELD ": 0123456789ABC\r\n"
						      "\t0123456789abcdef0123456789abcdef\r\n";
	static const char *const none[] = {
		ARCHIVE_MARK_FIELD ":\r\n",
		ARCHIVE_MARK_FIELD ": 0123456789ABC\r\n",
		ARCHIVE_MARK_FIELD ": 0123456789ABC text\r\n",
		ARCHIVE_MARK_FIELD ": 0123456789AB 0123456789abcdef0123456789abcdef\r\n",
		ARCHIVE_MARK_FIELD ": 0123456789ABC 0123456789abcdef0123456789abcde;\r\n",
		ARCHIVE_MARK_FIELD ": 0123456789ABC 0123456789abcdef0123456789abcdef (x)\r\n",
		ARCHIVE_MARK_FIELD "-Not: 0123456789ABC 0123456789abcdef0123456789abcdef\r\n",
	};
	struct buf header = {0};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		buf_puts(&header, none[i]);
	buf_puts(&header,
		 "sluice-archived :0123456789ABC\r\n   0123456789abcdef0123456789abcdef \r\n");
	struct archive_marks m = read_in(buf_cstr(&header));
	assert_string_equal(buf_cstr(&m.text), mark);
	archive_marks_fini(&m);
	buf_clear(&header);
	for (int i = 0; i < 2 * ARCHIVE_MARKS_MAX; i++)
		buf_puts(&header, mark);
	m = read_in(buf_cstr(&header));
	assert_int_equal(buf_len(&m.text), ARCHIVE_MARKS_MAX * strlen(mark));
	archive_marks_fini(&m);
	buf_fini(&header);
}

/* What is made for so many is short enough to be read. */
static void a_mark_for_many_is_read(void **state)
{
	(void)state;
	char text[ARCHIVE_MARK_ADDRESSES + 1][30];
	const char *address[ARCHIVE_MARK_ADDRESSES + 1];
	for (int i = 0; i <= ARCHIVE_MARK_ADDRESSES; i++) {
		snprintf(text[i], sizeof text[i], "j%d@archive.test", i);
		address[i] = text[i];
	}
	char *mark = made(address, ARCHIVE_MARK_ADDRESSES + 1);
	assert_true(has(mark, text[ARCHIVE_MARK_ADDRESSES - 1]));
	assert_false(has(mark, text[ARCHIVE_MARK_ADDRESSES]));
	free(mark);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mark_is_known_again_for_its_addresses),
		cmocka_unit_test(what_is_changed_or_too_old_is_none),
		cmocka_unit_test(marks_of_others_are_handed_on_and_nothing_else),
		cmocka_unit_test(a_mark_for_many_is_read),
	};
	return RUN(tests);
}
