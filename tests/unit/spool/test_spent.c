/* SPDX-License-Identifier: ISC */
/* Whoever reads the whole log finds no message that is done: with its checkpoint, or without. */
#include "harness.h"

#include "spool/repair.h"
#include "spool/segment.h"
#include "spool/spool_look.h"

#include <fcntl.h>

/* The one message that is left, and the first segment, which holds its content and nothing else that counts. */
static uint64_t waits;
static char *first;

static int teardown(void **state)
{
	free(first);
	return harness_teardown(state);
}

static char *first_segment(void)
{
	for (uint64_t seq = 1; seq < 1000; seq++) {
		char name[SEGMENT_NAME];
		char *path = mem_printf("%s/log/%s", h.conf->spool, segment_name(seq, name));
		if (access(path, F_OK) == 0)
			return path;
		free(path);
	}
	fail_msg("there is no segment");
	return NULL;
}

static void lose_what_said_so(void)
{
	waits = harness_lose_proofs(&h);
	harness_crash(&h);
	first = first_segment();
}

static void only_that_one_is_seen_offline(void)
{
	struct buf error = {0};
	uint64_t id[10];
	struct spool_look *l = spool_look_new(h.conf, h.conf->spool, &error);
	assert_non_null(l);
	assert_int_equal(spool_look_ids(l, 0, id, 10), 1);
	assert_true(id[0] == waits);
	spool_look_free(&l);
	buf_fini(&error);
}

static void found(void *owner, const struct check_finding *f)
{
	(void)owner;
	(void)f;
}

static int messages(bool repair)
{
	struct check check = {.found = found};
	struct buf error = {0};
	assert_true(repair ? spool_repair(h.conf, &check, &error)
			   : spool_check(h.conf, &check, &error));
	buf_fini(&error);
	int n = 0;
	for (int q = 0; q <= SPOOL_HOLD; q++)
		n += (int)check.summary.messages[q];
	return n;
}

static void only_that_one_is_there_after_a_start(void)
{
	harness_open(&h);
	struct spool_command *c = harness_ask(&h, SPOOL_LIST, 0, 0, 100);
	assert_int_equal(c->nrow, 1);
	assert_true(c->row[0].envelope->id == waits);
	spool_command_free(&c);
}

static void seen_by_all(void)
{
	only_that_one_is_seen_offline();
	assert_int_equal(messages(false), 1);
	only_that_one_is_there_after_a_start();
}

static void put_flag(off_t at, uint8_t flags)
{
	int fd = open(first, O_WRONLY);
	assert_int_equal(pwrite(fd, &flags, 1, at), 1);
	close(fd);
}

static void with_a_checkpoint(void **state)
{
	(void)state;
	lose_what_said_so();
	seen_by_all();
}

static void without_a_checkpoint(void **state)
{
	(void)state;
	lose_what_said_so();
	harness_shell("rm '%s/log/checkpoint'", h.conf->spool, "");
	seen_by_all();
}

static void with_a_damaged_checkpoint(void **state)
{
	(void)state;
	lose_what_said_so();
	harness_shell("sed -i s/read/rEad/ '%s/log/checkpoint'", h.conf->spool, "");
	seen_by_all();
}

/* A file that does not belong there is a reason to repair. */
static void a_repair_brings_nothing_back(void **state)
{
	(void)state;
	lose_what_said_so();
	harness_shell("touch '%s/log/foreign'", h.conf->spool, "");
	assert_int_equal(messages(true), 1);
	seen_by_all();
}

/* An older program has said it in the checkpoint only; so does a head that was lost with its flag. */
static void the_checkpoint_alone_is_enough_and_the_next_start_marks(void **state)
{
	(void)state;
	lose_what_said_so();
	put_flag(SEGMENT_FLAGS_AT, 0);
	harness_shell("touch '%s/log/foreign'", h.conf->spool, "");
	assert_int_equal(messages(true), 1);
	put_flag(SEGMENT_FLAGS_AT, 0);
	seen_by_all();
	harness_crash(&h);
	harness_shell("rm '%s/log/checkpoint'", h.conf->spool, "");
	seen_by_all();
}

/* What waits must not be lost to one byte that the disk gives back wrongly. */
static void one_flag_alone_is_not_believed(void **state)
{
	(void)state;
	uint64_t id = harness_store(&h, 1, 1000);
	harness_wait(&h, &h.nstored, 1);
	harness_crash(&h);
	first = first_segment();
	for (int both = 0; both < 2; both++) {
		put_flag(SEGMENT_FLAGS_AT + (both ? SEGMENT_HEAD_AGAIN : 0), RECORD_GARBAGE);
		put_flag(SEGMENT_FLAGS_AT + (both ? 0 : SEGMENT_HEAD_AGAIN), 0);
		waits = id;
		seen_by_all();
		harness_crash(&h);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(with_a_checkpoint),
		TEST(without_a_checkpoint),
		TEST(with_a_damaged_checkpoint),
		TEST(a_repair_brings_nothing_back),
		TEST(the_checkpoint_alone_is_enough_and_the_next_start_marks),
		TEST(one_flag_alone_is_not_believed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
