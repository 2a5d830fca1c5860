/* SPDX-License-Identifier: ISC */
/* Content that is not where its envelope says, and is somewhere else under the same id. */
#include "harness.h"

#include "spool/older_copy.h"

#include <fcntl.h>
#include <string.h>

enum { SIZE = 300, FIRST_SEGMENT = 1 };

static struct segment *segment;
static struct older_copies copies;

static void read_log(uint64_t *ids, int n)
{
	int64_t changed_ms;
	for (int i = 0; i < n; i++) {
		ids[i] = harness_store(&h, 1, SIZE);
		harness_wait(&h, &h.nstored, i + 1);
	}
	harness_close(&h);
	char *log = mem_printf("%s/log", h.conf->spool);
	int folder = open(log, O_RDONLY | O_DIRECTORY);
	segment = segment_open(folder, FIRST_SEGMENT, O_RDWR, &changed_ms);
	assert_non_null(segment);
	close(folder);
	free(log);
}

static void end(void)
{
	older_copies_fini(&copies);
	segment_free(&segment);
	harness_open(&h);
}

static struct content *found(uint64_t id, uint64_t size)
{
	return older_copy(&copies, &segment, 1, id, size);
}

static void content_is_found_by_its_id(void **state)
{
	uint64_t id[3];
	(void)state;
	read_log(id, 3);
	for (int i = 0; i < 3; i++) {
		char bytes[SIZE];
		struct content *c = found(id[i], SIZE);
		assert_non_null(c);
		assert_int_equal(content_read(c, 0, bytes, SIZE), SIZE);
		assert_true(c->summed);
		content_unref(c);
	}
	assert_null(found(id[0], SIZE + 1));
	assert_null(found(id[2] + 1, SIZE));
	end();
}

static void one_that_is_not_whole_is_not_there(void **state)
{
	uint64_t id[1];
	char byte;
	(void)state;
	read_log(id, 1);
	off_t at = SEGMENT_BEGIN + RECORD_HEAD + 5;
	assert_int_equal(pread(segment->file->fd, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(segment->file->fd, &byte, 1, at), 1);
	assert_null(found(id[0], SIZE));
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(content_is_found_by_its_id),
		HARNESS_TEST(one_that_is_not_whole_is_not_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
