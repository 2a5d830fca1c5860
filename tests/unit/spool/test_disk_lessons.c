/* SPDX-License-Identifier: ISC */
/* What power cuts and failing disks have once found wrong and a few steps can show. */
#include "tests/unit/base/unit.h"

#include "base/condition.h"
#include "base/mem.h"
#include "spool/disk.h"
#include "spool/spool_core.h"
#include "tests/unit/spool/edges.h"
#include "tests/unit/spool/world.h"
#include "tests/unit/base/sanitized.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { CUTS = 20, CALLS = 40, SEEDS = SANITIZED ? 20 : 100, STEPS = 80 };

static struct world *w;

/* Its first start has done many things, and was killed. */
static void begin_with_history(uint64_t seed)
{
	w = world_begin(seed);
	world_open(w);
	for (int i = 0; i < STEPS; i++)
		world_step(w);
	world_kill(w);
}

/* Hand all of them to qmgr; it keeps them for another time. */
static void keep_all(void)
{
	for (int i = 0; i < 20; i++)
		world_do(w, "credit");
	edges_pass(100);
	assert_true(w->nheld > 0);
	while (w->nheld > 0)
		world_do(w, "keep");
}

static void a_new_queue_keeps_its_own_name(void **state)
{
	(void)state;
	w = world_begin(1);
	world_open(w);
	world_store_some(w, 1);
	world_cut(w, CUTS, false);
	world_done(&w);
}

static void a_cut_during_the_first_start_leaves_a_format_that_is_known(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		w = world_begin(seed);
		w->cut_every = 4;
		world_open(w);
		w->cut_every = 0;
		world_kill(w);
		struct memdisk *first = w->disk;
		for (int i = 0; i < w->nimage; i++) {
			w->disk = w->image[i]->disk;
			world_again(w, true);
			world_audit(w, true);
			world_kill(w);
		}
		w->disk = first;
		world_done(&w);
	}
}

/* From the nth call of a kind on, or that one only, the disk fails; a start is tried on it. */
static bool start_where_it_fails(enum memdisk_call call, int nth, int error, bool for_good)
{
	w->fails = true;
	memdisk_fail(w->disk, call, nth, error, for_good);
	promises_started(&w->promises, false);
	return world_open(w);
}

static void start_where_it_works(enum memdisk_call call)
{
	memdisk_fail(w->disk, call, 0, 0, false);
	w->fails = false;
	world_again(w, false);
}

/* What it could not read waits for another start, and whoever looks at the relay is told to make one. */
static bool says_that_it_is_incomplete(void)
{
	struct conditions now;
	bool is = false;
	conditions_take(&now);
	for (int i = 0; i < now.n; i++)
		is |= now.row[i].is == CONDITION_queue_incomplete;
	conditions_fini(&now);
	return is;
}

static void end_with_all_there(void)
{
	world_audit(w, true);
	world_kill(w);
	world_done(&w);
}

/* errno after so many calls, of a kind that a start makes; then the machine is well again. */
static void a_start_goes_wrong(enum memdisk_call call, int nth, int error, bool for_good)
{
	w = world_begin((uint64_t)nth);
	world_open(w);
	world_store_some(w, 20);
	world_kill(w);
	w->promises.vague = call == CALL_READ;
	if (start_where_it_fails(call, nth, error, for_good)) {
		edges_settle();
		world_heal(w);
		world_kill(w);
	}
	start_where_it_works(call);
	end_with_all_there();
}

static void a_start_without_descriptors_writes_nothing_off(void **state)
{
	(void)state;
	for (int nth = 1; nth <= CALLS; nth++)
		a_start_goes_wrong(CALL_OPEN, nth, EMFILE, nth % 2);
}

static void a_start_that_can_not_read_removes_nothing(void **state)
{
	(void)state;
	for (int nth = 1; nth <= CALLS; nth++)
		a_start_goes_wrong(CALL_READ, nth, EIO, nth % 2);
}

/* The replaced envelope's op was still referred to: a list, or the end, read freed memory. */
static void a_start_that_waits_for_the_disk_has_no_stale_work(void **state)
{
	(void)state;
	w = world_begin(7);
	world_open(w);
	world_store_some(w, 8);
	keep_all();
	world_pass_long(w);
	w->fails = true;
	memdisk_fail(w->disk, CALL_WRITE, 1, ENOSPC, true);
	for (int i = 0; i < 10; i++)
		world_do(w, "credit");
	edges_pass(2000000);
	for (int i = 0; i < 10; i++)
		world_do(w, "ask");
	edges_settle();
	world_stop(w);
	start_where_it_works(CALL_WRITE);
	end_with_all_there();
}

/* What was found beside an envelope that a killed process had not synced, and the start could not, was marked
 * as dead; the envelope, which the kernel took for written after the failed sync, went with the power. */
static void what_replaces_an_envelope_is_stable_before_that_is_dead(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		w = world_begin(seed);
		world_open(w);
		world_store_some(w, 8);
		keep_all();
		edges_pass(1);
		world_kill(w);
		if (start_where_it_fails(CALL_DATASYNC, (int)(1 + seed % 4), EIO, true)) {
			edges_settle();
			world_kill(w);
		}
		start_where_it_works(CALL_DATASYNC);
		world_cut(w, CUTS, false);
		world_done(&w);
	}
}

/* An envelope that a start had read and could not make safe was not there any more when its time came. It was
 * written off, and with it the older one, which was right. */
static void what_a_failing_start_has_read_is_not_written_off(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		w = world_begin(seed);
		world_open(w);
		world_store_some(w, 8);
		edges_pass(100);
		keep_all();
		edges_pass(1);
		world_kill(w);
		if (start_where_it_fails(CALL_DATASYNC, (int)(1 + seed % 4), EIO, true)) {
			edges_settle();
			assert_int_equal(says_that_it_is_incomplete(), w->promises.vague);
			world_pass_long(w);
			for (int i = 0; i < 10; i++)
				world_do(w, "credit");
			memdisk_fail(w->disk, CALL_DATASYNC, 0, 0, false);
			world_pass_long(w);
			edges_settle();
			world_kill(w);
		}
		start_where_it_works(CALL_DATASYNC);
		assert_false(says_that_it_is_incomplete());
		end_with_all_there();
	}
}

/* On a full disk no checkpoint could be written, and segments went all the same. Another, which the checkpoint
 * would have passed over, was read by the next start; what said that its messages were done had gone. */
static void what_is_done_stays_done_where_no_checkpoint_can_be_written(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin_with_history(seed);
		w->fails = true;
		world_again(w, false);
		memdisk_fail(w->disk, CALL_CREATE, (int)(1 + seed % 4), ENOSPC, true);
		for (int i = 0; i < STEPS; i++)
			world_step(w);
		edges_settle();
		world_kill(w);
		start_where_it_works(CALL_CREATE);
		end_with_all_there();
	}
}

/* Envelopes had been marked as dead, and the sync of it had failed: the next start saw the marks, which the kernel took
 * for written, and passed over what had said that the messages were done. The power took the marks. */
static void what_is_done_stays_done_where_marks_were_not_synced(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		begin_with_history(seed);
		if (start_where_it_fails(CALL_DATASYNC, (int)(3 + seed % 6), EIO, true)) {
			world_pass_long(w);
			world_stop(w);
		}
		start_where_it_works(CALL_DATASYNC);
		world_pass_long(w);
		world_store(w, true);
		world_pass_long(w);
		world_cut(w, CUTS, false);
		world_done(&w);
	}
}

/* Of the promises, the first that is large, or not. */
static struct promise *first_promise(bool large)
{
	for (int i = 0; i < w->promises.n; i++)
		if (promise_large(&w->promises.promise[i]) == large)
			return &w->promises.promise[i];
	return NULL;
}

static void a_large_message_keeps_nobody_waiting_and_is_safe_before_its_answer(void **state)
{
	(void)state;
	w = world_begin(11);
	world_open(w);
	edges_settle();
	while (!first_promise(true))
		world_store(w, false);
	if (first_promise(true)->state != PROMISE_OFFERED)
		fail_msg("another seed: the client has broken this one off");
	while (w->promises.n == 1)
		world_store(w, false);
	/* The threads that sync have not had their turn yet. */
	edges_turn(spool_loop(w->spool));
	edges_turn(w->client);
	assert_int_equal(first_promise(true)->state, PROMISE_OFFERED);
	assert_int_equal(first_promise(false)->state, PROMISE_STORED);
	world_cut(w, CUTS, false);
	world_done(&w);
	w = world_begin(11);
	world_open(w);
	edges_settle();
	while (!first_promise(true))
		world_store(w, false);
	int syncs = memdisk_count(w->disk, CALL_SYNC);
	edges_settle();
	assert_int_equal(first_promise(true)->state, PROMISE_STORED);
	assert_true(memdisk_count(w->disk, CALL_SYNC) > syncs); /* its name */
	world_cut(w, CUTS, false);
	world_done(&w);
}

/* Whoever stops has answered all that was posted before. */
static void a_large_message_is_answered_before_the_end(void **state)
{
	(void)state;
	w = world_begin(11);
	world_open(w);
	edges_settle();
	while (!first_promise(true))
		world_store(w, false);
	assert_int_equal(first_promise(true)->state, PROMISE_OFFERED);
	world_stop(w);
	assert_int_equal(first_promise(true)->state, PROMISE_STORED);
	world_again(w, false);
	end_with_all_there();
}

static bool spoilt;

static void spoil_segment(void *owner, const char *path, int fd)
{
	uint8_t bytes[SEGMENT_HEAD];
	struct iovec v = {.iov_base = bytes, .iov_len = sizeof bytes};
	const char *name = strrchr(path, '/') + 1;
	uint64_t seq;
	(void)fd;
	if (!segment_name_parse(name, &seq))
		return;
	memset(bytes, 'x', sizeof bytes);
	int to = disk_open(*(int *)owner, name, O_RDWR);
	uint64_t end;
	int64_t changed_ms;
	assert_int_equal(disk_size(to, &end, &changed_ms), 0);
	for (uint64_t at = SEGMENT_HEAD; at < end; at += sizeof bytes)
		assert_int_equal(disk_write(to, &v, 1, at), 0);
	disk_close(to);
}

/* Where it could not be written once more, the disk gives something else from then on. */
static void spoil_what_was_read(struct world *of, enum memdisk_call call)
{
	if (spoilt || call != CALL_READ || !memdisk_failed(of->disk))
		return;
	spoilt = true;
	int folder = of->spool->journal.folder;
	memdisk_files(of->disk, spoil_segment, &folder);
}

static void find_nothing_aside(void *owner, const char *path, int fd)
{
	(void)owner;
	(void)fd;
	assert_null(strstr(path, "/quarantine/"));
}

/* The next start may read it. */
static void what_was_being_delivered_is_not_written_off_on_a_disk_that_fails(void **state)
{
	(void)state;
	spoilt = false;
	w = world_begin(11);
	world_open(w);
	edges_settle();
	while (!first_promise(true)) /* whose content is not where its envelope is */
		world_store(w, true);
	for (int i = 0; i < 20; i++)
		world_do(w, "credit");
	edges_pass(100);
	assert_true(w->nheld > 0);
	world_pass_long(w);
	world_kill(w);
	w->fails = true;
	edges_stepped(true);
	promises_started(&w->promises, false);
	assert_true(world_open(w));
	memdisk_fail(w->disk, CALL_DATASYNC, 1, EIO, false);
	w->on_call = spoil_what_was_read;
	while (edges_threads_run())
		edges_threads(1);
	w->on_call = NULL;
	assert_true(spoilt);
	memdisk_files(w->disk, find_nothing_aside, NULL);
	world_kill(w);
	edges_stepped(false);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_queue_keeps_its_own_name),
		cmocka_unit_test(a_cut_during_the_first_start_leaves_a_format_that_is_known),
		cmocka_unit_test(a_start_without_descriptors_writes_nothing_off),
		cmocka_unit_test(a_start_that_can_not_read_removes_nothing),
		cmocka_unit_test(a_start_that_waits_for_the_disk_has_no_stale_work),
		cmocka_unit_test(what_replaces_an_envelope_is_stable_before_that_is_dead),
		cmocka_unit_test(what_a_failing_start_has_read_is_not_written_off),
		cmocka_unit_test(what_is_done_stays_done_where_no_checkpoint_can_be_written),
		cmocka_unit_test(what_is_done_stays_done_where_marks_were_not_synced),
		cmocka_unit_test(
			a_large_message_keeps_nobody_waiting_and_is_safe_before_its_answer),
		cmocka_unit_test(a_large_message_is_answered_before_the_end),
		cmocka_unit_test(what_was_being_delivered_is_not_written_off_on_a_disk_that_fails),
	};
	return RUN(tests);
}
