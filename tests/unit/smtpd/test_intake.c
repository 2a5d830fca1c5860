/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "smtpd/intake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The files of the spool, replaced: what is written, in memory. */
struct spool_file {
	uint64_t size;
	unsigned sum;
};

static int files, writes, fail_after;

struct spool_file *spool_file_new(struct spool *spool, uint64_t id)
{
	(void)spool;
	(void)id;
	files++;
	return calloc(1, sizeof(struct spool_file));
}

int spool_file_write(struct spool_file *f, const void *bytes, size_t len)
{
	const unsigned char *byte = bytes;
	if (fail_after && writes >= fail_after)
		return ENOSPC;
	writes++;
	for (size_t i = 0; i < len; i++)
		f->sum = f->sum * 31 + byte[i];
	f->size += len;
	return 0;
}

uint64_t spool_file_size(const struct spool_file *f)
{
	return f->size;
}

void spool_file_discard(struct spool_file **fp)
{
	free(*fp);
	*fp = NULL;
	files--;
}

static struct intake in;
static struct content *content;
static struct spool_file *file;

static int begin(void **state)
{
	(void)state;
	files = writes = fail_after = 0;
	content = NULL;
	file = NULL;
	intake_init(&in, NULL, 1, 0);
	in.decoder.dots = true;
	intake_put(&in, "Received: x\r\n", 13);
	return 0;
}

static int end(void **state)
{
	(void)state;
	intake_fini(&in);
	content_unref(content);
	free(file);
	return 0;
}

static void feed(const char *text)
{
	content_in_feed(&in.decoder, text, strlen(text));
}

static void small_content_stays_in_memory(void **state)
{
	(void)state;
	feed("Message-ID: <a@b>\r\n\r\n..text\r\n.\r\n");
	intake_finish(&in);
	uint64_t size = intake_take(&in, &content, &file);
	assert_null(file);
	assert_int_equal(size, content->size);
	assert_int_equal(size, 13 + 21 + 7);
	assert_memory_equal(content->memory, "Received: x\r\nMessage-ID: <a@b>\r\n\r\n.text\r\n",
			    size);
	assert_string_equal(in.header.id, "<a@b>");
}

static void large_content_goes_to_a_file_in_long_runs(void **state)
{
	(void)state;
	unsigned sum = 0;
	uint64_t size = 13;
	for (const char *p = "Received: x\r\n"; *p; p++)
		sum = sum * 31 + (unsigned char)*p;
	for (int i = 0; i < 90000; i++) {
		feed("Subject: 7\r\n");
		for (const char *p = "Subject: 7\r\n"; *p; p++)
			sum = sum * 31 + (unsigned char)*p;
		size += 12;
	}
	feed(".\r\n");
	intake_finish(&in);
	assert_int_equal(intake_error(&in), 0);
	assert_int_equal(intake_take(&in, &content, &file), size);
	assert_non_null(file);
	assert_null(content);
	assert_int_equal(file->sum, sum);
	assert_true(writes <= 11);
	assert_true(in.out.memory.cap == 0);
}

static void content_exactly_as_large_as_memory_may_hold_has_no_file(void **state)
{
	(void)state;
	char bytes[1024];
	memset(bytes, 'x', sizeof bytes);
	while (buf_len(&in.out.memory) + sizeof bytes <= SPOOL_CONTENT_INLINE_MAX)
		intake_put(&in, bytes, sizeof bytes);
	intake_put(&in, bytes, SPOOL_CONTENT_INLINE_MAX - buf_len(&in.out.memory));
	assert_int_equal(files, 0);
	intake_put(&in, bytes, 1);
	assert_int_equal(files, 1);
}

static void a_disk_that_fails_is_remembered_and_costs_no_memory(void **state)
{
	(void)state;
	fail_after = 1;
	for (int i = 0; i < 100000; i++)
		feed("Subject: 7\r\n");
	intake_finish(&in);
	assert_int_equal(intake_error(&in), ENOSPC);
	assert_true(in.out.memory.cap == 0);
}

static void a_refused_message_leaves_no_file(void **state)
{
	(void)state;
	for (int i = 0; i < 50000; i++)
		feed("Subject: 7\r\n");
	assert_int_equal(files, 1);
	intake_fini(&in);
	assert_int_equal(files, 0);
}

static void what_a_submission_lacks_is_added(void **state)
{
	(void)state;
	intake_add_missing(&in, "relay.test", "me@sender.test");
	feed("Date: today\r\n\r\n.\r\n");
	intake_finish(&in);
	intake_take(&in, &content, &file);
	static const char wanted[] =
		"Received: x\r\nDate: today\r\nMessage-ID: <0000000000001@relay.test>\r\n"
		"From: <me@sender.test>\r\n\r\n";
	assert_int_equal(content->size, sizeof wanted - 1);
	assert_memory_equal(content->memory, wanted, sizeof wanted - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(small_content_stays_in_memory),
		TEST(large_content_goes_to_a_file_in_long_runs),
		TEST(content_exactly_as_large_as_memory_may_hold_has_no_file),
		TEST(a_disk_that_fails_is_remembered_and_costs_no_memory),
		TEST(a_refused_message_leaves_no_file),
		TEST(what_a_submission_lacks_is_added),
	};
	return RUN(tests);
}
