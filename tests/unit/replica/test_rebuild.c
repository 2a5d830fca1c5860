/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "replica/format.h"
#include "replica/life.h"
#include "replica/rebuild.h"
#include "spool/record.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/var/tmp/rebuild-XXXXXX";
static int top, file;
static uint64_t end, since;
static bool hollow;

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/var/tmp/rebuild-XXXXXX");
	assert_non_null(mkdtemp(folder));
	top = open(folder, O_RDONLY | O_DIRECTORY);
	file = openat(top, "stream", O_RDWR | O_CREAT, 0600);
	end = since = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(file);
	close(top);
	life_remove("/var/tmp", strrchr(folder, '/') + 1);
	return 0;
}

static void say(uint64_t epoch, enum replica_type type, uint64_t of, uint64_t offset, uint64_t size,
		const char *text)
{
	uint8_t message[REPLICA_HEAD + 200];
	size_t len = strlen(text);
	struct replica_head h = {.type = type,
				 .epoch = epoch,
				 .of = of,
				 .offset = offset,
				 .size = size,
				 .length = (uint32_t)len,
				 .crc = crc32c(0, text, len)};
	replica_head_put(message, &h);
	memcpy(message + REPLICA_HEAD, text, len);
	assert_true(rebuild_keep(file, &end, message, REPLICA_HEAD + len));
}

static void run(void)
{
	assert_true(rebuild_run(top, file, end, since, &hollow));
	assert_int_equal(faccessat(top, "format", F_OK, 0), 0);
}

static bool there(const char *name)
{
	return faccessat(top, name, F_OK, 0) == 0;
}

static void holds(const char *name, size_t offset, const char *text)
{
	char found[200] = "";
	int fd = openat(top, name, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, found, strlen(text), (off_t)offset), strlen(text));
	assert_string_equal(found, text);
	close(fd);
}

static void what_was_sent_of_an_epoch_that_is_complete_is_there(void **state)
{
	struct stat st;
	(void)state;
	say(3, REPLICA_BEGIN, 7, 0, 0, "");
	say(3, REPLICA_LOG, 7, 0, 64, "abcdef");
	say(3, REPLICA_COMPLETE, 0, 0, 0, "checkpoint");
	say(3, REPLICA_LOG, 7, 6, 64, "ghi");
	say(3, REPLICA_LOG, 7, 6, 64, "ghi");
	say(3, REPLICA_CHECKPOINT, 0, 0, 0, "a newer one");
	run();
	holds("log/0000000000000007.seg", 0, "abcdefghi");
	assert_int_equal(fstatat(top, "log/0000000000000007.seg", &st, 0), 0);
	assert_int_equal(st.st_size, 64);
	holds("log/checkpoint", 0, "a newer one");
}

/* A disk failed, and what had been sent was withdrawn; then the connection broke. */
static void what_comes_behind_the_end_of_a_segment_changes_nothing(void **state)
{
	static const char ending[RECORD_HEAD + 1] = "sR\x08"
						    "this is where it ends";
	(void)state;
	say(3, REPLICA_BEGIN, 7, 0, 0, "");
	say(3, REPLICA_LOG, 7, 0, 64, "abcdef");
	say(3, REPLICA_LOG, 7, 6, 64, ending);
	say(3, REPLICA_LOG, 7, 6, 64, "what was withdrawn, and comes late");
	say(3, REPLICA_COMPLETE, 0, 0, 0, "");
	run();
	holds("log/0000000000000007.seg", 0, "abcdef");
	holds("log/0000000000000007.seg", 6, ending);
}

static void of_older_epochs_nothing_counts_then(void **state)
{
	(void)state;
	say(3, REPLICA_LOG, 5, 0, 64, "older");
	say(3, REPLICA_COMPLETE, 0, 0, 0, "");
	say(4, REPLICA_BEGIN, 8, 0, 0, "");
	say(4, REPLICA_LOG, 8, 0, 64, "new");
	say(4, REPLICA_CHECKPOINT, 0, 0, 0, "x"); /* COMPLETE has gone: this one is newer */
	run();
	assert_false(there("log/0000000000000005.seg"));
	holds("log/0000000000000008.seg", 0, "new");
}

/* NATS has lost the first that it had acknowledged; what is left says nothing of what there was. */
static void one_whose_beginning_is_gone_is_hollow(void **state)
{
	(void)state;
	say(3, REPLICA_LOG, 5, 40, 64, "the rest");
	say(4, REPLICA_BEGIN, 8, 0, 0, "");
	say(4, REPLICA_LOG, 8, 0, 64, "new");
	run();
	assert_true(hollow);
	say(4, REPLICA_COMPLETE, 0, 0, 0, "");
	run();
	assert_false(hollow);
}

static void one_that_ended_before_its_queue_was_there_is_not(void **state)
{
	(void)state;
	run();
	assert_false(hollow);
	say(3, REPLICA_BEGIN, 8, 0, 0, "");
	say(3, REPLICA_LOG, 8, 0, 64, "new");
	run();
	assert_false(hollow);
}

static void of_an_epoch_that_has_only_begun_what_is_new_counts(void **state)
{
	(void)state;
	say(3, REPLICA_BEGIN, 5, 0, 0, "");
	say(3, REPLICA_LOG, 5, 0, 64, "older");
	say(3, REPLICA_COMPLETE, 0, 0, 0, "");
	say(4, REPLICA_BEGIN, 8, 0, 0, "");
	say(4, REPLICA_LOG, 5, 0, 64, "OLDER");
	say(4, REPLICA_MARKS, 5, 0, 0, "\0\0\0\0");
	say(4, REPLICA_LOG, 8, 0, 64, "new");
	say(4, REPLICA_SPARE + 1, 8, 0, 64, "not of this format");
	run();
	holds("log/0000000000000005.seg", 0, "older");
	holds("log/0000000000000008.seg", 0, "new");
}

static void of_a_former_life_nothing_counts(void **state)
{
	(void)state;
	since = 5;
	say(3, REPLICA_LOG, 5, 0, 64, "sent by its adopter");
	say(3, REPLICA_COMPLETE, 0, 0, 0, "");
	say(5, REPLICA_BEGIN, 1, 0, 0, "");
	say(5, REPLICA_LOG, 1, 0, 64, "new");
	say(5, REPLICA_BEAT, 0, 0, 0, "");
	say(5, REPLICA_SPARE, 0, 0, 0, "room");
	run();
	assert_false(there("log/0000000000000005.seg"));
	holds("log/0000000000000001.seg", 0, "new");
}

static void a_large_file_without_its_end_is_not_there(void **state)
{
	(void)state;
	say(3, REPLICA_COMPLETE, 0, 0, 0, "");
	say(3, REPLICA_LARGE, 1, 0, 6, "abc");
	say(3, REPLICA_LARGE, 1, 3, 6, "def");
	say(3, REPLICA_LARGE_END, 1, 0, 6, "");
	say(3, REPLICA_LARGE, 2, 0, 6, "abc");
	say(3, REPLICA_LARGE, 3, 0, 6, "abc");
	say(3, REPLICA_LARGE_END, 3, 0, 6, "");
	run();
	holds("large/0000000000001", 0, "abcdef");
	assert_false(there("large/0000000000002") || there("large/0000000000002.part"));
	assert_false(there("large/0000000000003") || there("large/0000000000003.part"));
}

/* Over two connections one piece, or the end, may overtake another. */
static void pieces_of_a_large_file_come_in_any_order(void **state)
{
	(void)state;
	say(3, REPLICA_COMPLETE, 0, 0, 0, "");
	say(3, REPLICA_LARGE_END, 1, 0, 6, "");
	say(3, REPLICA_LARGE, 1, 3, 6, "def");
	say(3, REPLICA_LARGE, 1, 0, 6, "abc");
	say(3, REPLICA_LARGE, 2, 3, 6, "def");
	say(3, REPLICA_LARGE_END, 2, 0, 6, "");
	say(3, REPLICA_LARGE, 2, 0, 6, "abc");
	say(3, REPLICA_LARGE_END, 2, 0, 6, "");
	say(3, REPLICA_LARGE_END, 3, 0, 6, "");
	run();
	holds("large/0000000000001", 0, "abcdef");
	holds("large/0000000000002", 0, "abcdef");
	assert_false(there("large/0000000000003"));
}

static void an_empty_stream_is_an_empty_queue(void **state)
{
	(void)state;
	run();
	assert_true(there("log") && there("large") && !there("log/checkpoint"));
}

static void a_queue_that_is_past_is_put_aside_and_a_new_life_begins(void **state)
{
	struct epoch_own own, again;
	struct buf error = {0};
	char name[80];
	(void)state;
	assert_true(life_read(folder, &own));
	assert_true(own.life != 0 && own.epoch == 0);
	own.epoch = 7;
	own.beat = 12;
	assert_true(life_write(folder, &own));
	assert_true(life_read(folder, &again));
	assert_true(again.life == own.life && again.epoch == 7 && again.beat == 12);
	run();
	assert_true(life_put_aside(folder, &error));
	assert_true(there("log"));
	assert_true(life_end(folder));
	for (int i = 0; i < 2; i++)
		assert_true(life_put_aside(folder, &error));
	assert_false(there("log") || there("format") || there("node") || there("node.past"));
	snprintf(name, sizeof name, "adopted/7-%016llx/log", (unsigned long long)own.life);
	assert_true(there(name));
	assert_true(life_read(folder, &again));
	assert_true(again.life != own.life && again.epoch == 0);
	buf_fini(&error);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_sent_of_an_epoch_that_is_complete_is_there),
		TEST(what_comes_behind_the_end_of_a_segment_changes_nothing),
		TEST(of_older_epochs_nothing_counts_then),
		TEST(one_whose_beginning_is_gone_is_hollow),
		TEST(one_that_ended_before_its_queue_was_there_is_not),
		TEST(of_an_epoch_that_has_only_begun_what_is_new_counts),
		TEST(of_a_former_life_nothing_counts),
		TEST(a_large_file_without_its_end_is_not_there),
		TEST(pieces_of_a_large_file_come_in_any_order),
		TEST(an_empty_stream_is_an_empty_queue),
		TEST(a_queue_that_is_past_is_put_aside_and_a_new_life_begins),
	};
	return RUN(tests);
}
