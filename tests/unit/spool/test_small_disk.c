/* SPDX-License-Identifier: ISC */
/* The disk has room for little more than a segment: what is only allocated, or dead, refuses no mail. This test links a disk,
 * and the part that makes room, of its own. */
#define disk_free_bytes real_disk_free_bytes
#define disk_allocate real_disk_allocate
#include "spool/disk.c"
#undef disk_free_bytes
#undef disk_allocate
#include "spool/compact.c"

#include "harness.h"

#include "base/metrics.h"

#include <dirent.h>
#include <stdatomic.h>

enum { SIZE = 5000, SEGMENT = 4 << 20, MINFREE = 1 << 20, EACH = 50, MESSAGES = 280 };

static int64_t disk_bytes; /* it has so many */
static atomic_bool quota;  /* nobody can see how many are left */

static int64_t used_bytes(void)
{
	char *path = mem_printf("%s/log", h.conf->spool);
	DIR *d = opendir(path);
	int64_t bytes = 0;
	for (struct dirent *e; d && (e = readdir(d));) {
		struct stat st;
		if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
			bytes += st.st_size;
	}
	if (d)
		closedir(d);
	free(path);
	return bytes;
}

int64_t disk_free_bytes(int fd);
int disk_allocate(int fd, uint64_t size);

int64_t disk_free_bytes(int fd)
{
	return atomic_load(&quota) ? real_disk_free_bytes(fd) : disk_bytes - used_bytes();
}

int disk_allocate(int fd, uint64_t size)
{
	if (used_bytes() + (int64_t)size <= disk_bytes)
		return real_disk_allocate(fd, size);
	errno = atomic_load(&quota) ? EDQUOT : ENOSPC;
	return -1;
}

static void open_on_disk(int64_t bytes, bool has_quota)
{
	disk_bytes = bytes;
	atomic_store(&quota, has_quota);
	harness_init(&h);
	h.conf->segment_size = SEGMENT;
	h.conf->queue_minfree = MINFREE;
	harness_open(&h);
	harness_credit(&h, 2 * MESSAGES);
}

static int close_disk(void **state)
{
	return harness_teardown(state);
}

static void one_message_is_taken(void)
{
	harness_store(&h, 1, SIZE);
	harness_wait(&h, &h.nstored, 1);
	assert_int_equal(h.nrefused, 0);
	assert_true(spool_accepting(h.spool));
}

/* With an empty queue, and four times what was to stay free, the first segment had taken all of it. */
static void a_segment_takes_no_room_that_is_to_stay_free(void **state)
{
	(void)state;
	open_on_disk(SEGMENT + MINFREE, false);
	one_message_is_taken();
}

/* Each message that needed another segment was refused, and the reserve used up. */
static void a_segment_that_exceeds_a_quota_is_made_smaller(void **state)
{
	(void)state;
	open_on_disk(SEGMENT - 1, true);
	one_message_is_taken();
	assert_int_equal(metrics_sum(METRIC_commit_failures), 0);
}

/* One message of EACH is put off, the others are delivered. */
static void work_on(int number)
{
	struct envelope *e = harness_take(&h);
	if (number % EACH == 0) {
		e->due_ms = clock_wall_ms() + 300000;
		e->rounds++;
		harness_release(&h, e->id, e);
		return;
	}
	harness_release(&h, e->id, NULL);
	envelope_free(&e);
}

/* Who stays keeps a segment from going, and these were the whole disk. */
static void what_is_dead_takes_no_more_than_is_free(void **state)
{
	(void)state;
	open_on_disk(SEGMENT + MINFREE, false);
	for (int i = 0; i < MESSAGES; i++) {
		harness_store(&h, 1, SIZE);
		work_on(i);
	}
	for (int i = 0; i < 3000 && metrics_sum(METRIC_compacted_bytes) == 0; i++)
		usleep(10000);
	assert_true(metrics_sum(METRIC_compacted_bytes) > 0);
	for (int i = 0; i < 3000 && !spool_accepting(h.spool); i++)
		usleep(10000);
	assert_true(spool_accepting(h.spool));
	harness_recovered(&h, (MESSAGES + EACH - 1) / EACH);
}

static void wait_for_answers(int n)
{
	for (int i = 0; i < 30000 && h.nstored + h.nrefused < n; i++) {
		usleep(1000);
		ev_run(h.loop->ev, EVRUN_NOWAIT);
	}
	assert_int_equal(h.nstored + h.nrefused, n);
}

/* The system tells of much room, and the quota is known by its refusals alone. */
static void what_is_dead_makes_room_under_a_quota(void **state)
{
	(void)state;
	open_on_disk(SEGMENT, true);
	int stored = 0;
	int64_t compacted = metrics_sum(METRIC_compacted_bytes);
	for (; h.nrefused == 0; stored++) {
		assert_in_range(stored, 0, SEGMENT / SIZE);
		harness_store(&h, 1, SIZE);
		wait_for_answers(stored + 1);
		if (h.nrefused == 0)
			work_on(stored);
	}
	for (int i = 0; i < 3000 && metrics_sum(METRIC_compacted_bytes) == compacted; i++)
		usleep(10000);
	/* What was moved is moved before its segment goes: until then another may be refused. */
	int refused = h.nrefused - 1;
	for (int i = 0; i < 3000 && h.nrefused > refused; i++) {
		usleep(10000);
		refused = h.nrefused;
		harness_store(&h, 1, SIZE);
		wait_for_answers(++stored);
	}
	assert_int_equal(h.nrefused, refused);
}

/* Else it would use up the reserve, and leave the segment where it is. */
static void what_is_moved_fits_where_it_goes(void **state)
{
	enum { REST = 1000, FREE = 5000 };
	struct segment current = {.size = SEGMENT, .end = SEGMENT - REST}, g = {.live = 1};
	struct spool *s = mem_zalloc(sizeof *s);
	(void)state;
	s->journal.lane[LANE_MAIN].current = &current;
	s->room.free = FREE;
	g.live_bytes = FREE + REST;
	assert_false(has_room_for_move(s, &g));
	g.live_bytes--;
	assert_true(has_room_for_move(s, &g));
	s->journal.reserve_error = EDQUOT; /* nobody can tell what is free */
	assert_false(has_room_for_move(s, &g));
	g.live_bytes = REST;
	assert_false(has_room_for_move(s, &g));
	g.live_bytes--;
	assert_true(has_room_for_move(s, &g));
	s->journal.reserve_error = 0;
	s->room.free = -1;
	g.live_bytes = SEGMENT;
	assert_true(has_room_for_move(s, &g));
	free(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, close_disk)
	const struct CMUnitTest tests[] = {
		TEST(a_segment_takes_no_room_that_is_to_stay_free),
		TEST(a_segment_that_exceeds_a_quota_is_made_smaller),
		TEST(what_is_dead_takes_no_more_than_is_free),
		TEST(what_is_dead_makes_room_under_a_quota),
		cmocka_unit_test(what_is_moved_fits_where_it_goes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
