/* SPDX-License-Identifier: ISC */
/* The disk fails: this test links a disk of its own, the real one with faults. */
#define disk_write real_disk_write
#define disk_datasync real_disk_datasync
#define disk_open real_disk_open
#include "spool/disk.c"
#undef disk_write
#undef disk_datasync
#undef disk_open

#include "harness.h"

#include "base/condition.h"
#include "base/metrics.h"
#include "spool/journal.h"
#include "spool/replicate.h"
#include "spool/segment.h"

#include <stdatomic.h>

static atomic_int fail_writes, fail_syncs, fail_opens; /* how many of the next */
static atomic_bool fail_seals;			       /* writes behind a sync that has failed */
static atomic_int no_files;			       /* errno of whoever makes a file; or 0 */

static bool fails(atomic_int *n)
{
	if (atomic_load(n) <= 0)
		return false;
	atomic_fetch_sub(n, 1);
	errno = EIO;
	return true;
}

/* Of the segments: what else is written now and then is not what these tests are about. */
static bool is_segment(int fd)
{
	char link[64], path[512];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	path[n > 0 ? n : 0] = '\0';
	return strstr(path, ".seg");
}

int disk_open(int folder, const char *name, int flags);
int disk_write(int fd, struct iovec *v, size_t n, uint64_t offset);
int disk_datasync(int fd);

int disk_open(int folder, const char *name, int flags)
{
	if (flags & O_CREAT && atomic_load(&no_files)) {
		errno = atomic_load(&no_files);
		return -1;
	}
	return flags & O_CREAT && strstr(name, ".seg") && fails(&fail_opens)
		       ? -1
		       : real_disk_open(folder, name, flags);
}

int disk_write(int fd, struct iovec *v, size_t n, uint64_t offset)
{
	return is_segment(fd) && fails(&fail_writes) ? -1 : real_disk_write(fd, v, n, offset);
}

int disk_datasync(int fd)
{
	bool ok = !is_segment(fd) || !fails(&fail_syncs);
	if (!ok && atomic_load(&fail_seals))
		atomic_store(&fail_writes, 1);
	return ok ? real_disk_datasync(fd) : -1;
}

static int setup(void **state)
{
	atomic_store(&fail_writes, 0);
	atomic_store(&fail_syncs, 0);
	atomic_store(&fail_opens, 0);
	atomic_store(&fail_seals, false);
	atomic_store(&no_files, 0);
	return harness_setup(state);
}

/* A message whose store was refused is not there, now or after a crash; others are. */
static void one_failure(atomic_int *which)
{
	harness_credit(&h, 100);
	uint64_t before = harness_store(&h, 1, 1000);
	harness_wait(&h, &h.nstored, 1);
	atomic_store(which, 1);
	uint64_t refused = harness_store(&h, 1, 1000);
	harness_wait(&h, &h.nrefused, 1);
	uint64_t after = harness_store(&h, 1, 1000);
	harness_wait(&h, &h.nstored, 2);
	assert_true(spool_accepting(h.spool));
	assert_int_equal(harness_count(&h), 2);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 2);
	struct spool_command *c = harness_ask(&h, SPOOL_SHOW, before, 0, 0);
	assert_int_equal(c->nrow, 1);
	spool_command_free(&c);
	c = harness_ask(&h, SPOOL_SHOW, refused, 0, 0);
	assert_int_equal(c->nrow, 0);
	spool_command_free(&c);
	c = harness_ask(&h, SPOOL_SHOW, after, 0, 0);
	assert_int_equal(c->nrow, 1);
	spool_command_free(&c);
}

static void a_write_that_fails_refuses_the_batch_and_no_more(void **state)
{
	(void)state;
	one_failure(&fail_writes);
}

static void a_sync_that_fails_refuses_the_batch_and_no_more(void **state)
{
	(void)state;
	one_failure(&fail_syncs);
}

/* A message, and another that is to be stored in the same batch. */
static uint64_t store_two(uint64_t *with)
{
	struct spool_store *one = harness_new_store(&h, 1, 1000);
	uint64_t id = one->envelope->id;
	one->with = harness_new_store(&h, 1, 1000);
	one->with->reply_to = NULL;
	*with = one->with->envelope->id;
	loop_post(spool_loop(h.spool), &one->note);
	return id;
}

static void expect(uint64_t id, bool there)
{
	struct spool_command *c = harness_ask(&h, SPOOL_SHOW, id, 0, 0);
	assert_int_equal(c->nrow, there);
	spool_command_free(&c);
}

static void of_two_that_belong_together_both_are_stored_or_neither(void **state)
{
	uint64_t with, id;
	(void)state;
	harness_credit(&h, 100);
	atomic_int *const fails_at[] = {&fail_writes, &fail_syncs};
	for (size_t i = 0; i < sizeof fails_at / sizeof *fails_at; i++) {
		atomic_store(fails_at[i], 1);
		id = store_two(&with);
		harness_wait(&h, &h.nrefused, (int)i + 1);
		expect(id, false);
		expect(with, false);
	}
	id = store_two(&with);
	harness_wait(&h, &h.nstored, 1);
	harness_wait(&h, &h.narrival, 2);
	assert_int_equal(h.nrefused, 2);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 2);
	expect(id, true);
	expect(with, true);
}

static void a_disk_that_fails_for_long_refuses_mail_until_it_works(void **state)
{
	(void)state;
	atomic_store(&fail_syncs, 1);
	atomic_store(&fail_opens, 2);
	harness_store(&h, 1, 1000);
	harness_wait(&h, &h.nrefused, 1);
	for (int i = 0; i < 3000 && !spool_accepting(h.spool); i++)
		usleep(10000);
	int n = h.nstored;
	while (h.nstored == n) {
		int answers = h.nrefused + h.nstored + 1;
		harness_store(&h, 1, 1000);
		while (h.nrefused + h.nstored < answers)
			ev_run(h.loop->ev, EVRUN_NOWAIT);
	}
	assert_true(spool_accepting(h.spool));
}

static bool holds(enum condition is, const char *reason)
{
	struct conditions now;
	bool found = false;
	conditions_take(&now);
	for (int i = 0; i < now.n; i++)
		found |= now.row[i].is == is && now.row[i].reason &&
			 strcmp(now.row[i].reason, reason) == 0;
	conditions_fini(&now);
	return found;
}

static int count_conditions(void)
{
	struct conditions now;
	conditions_take(&now);
	int n = now.n;
	conditions_fini(&now);
	return n;
}

/* The segment is lost, and neither another nor a reserve can be made: what is told has this cause, and ends with it. */
static void no_file_can_be_made(int error, enum condition is)
{
	int refused = h.nrefused;
	atomic_store(&no_files, error);
	atomic_store(&fail_writes, 1);
	harness_store(&h, 1, 1000);
	harness_wait(&h, &h.nrefused, refused + 1);
	for (int i = 0; i < WAIT_MS && !holds(is, strerror(error)); i++)
		usleep(1000);
	assert_true(holds(is, strerror(error)));
	assert_false(spool_accepting(h.spool));
	atomic_store(&no_files, 0);
	for (int i = 0; i < WAIT_MS && !spool_accepting(h.spool); i++)
		usleep(1000);
	assert_true(spool_accepting(h.spool));
	for (int i = 0; i < WAIT_MS && count_conditions() > 0; i++)
		usleep(1000);
	assert_int_equal(count_conditions(), 0);
	int stored = h.nstored;
	harness_store(&h, 1, 1000);
	harness_wait(&h, &h.nstored, stored + 1);
}

/* A folder that nothing could be written to, with half of the disk free, was told as a full disk. */
static void a_disk_that_takes_no_file_is_full_only_if_it_has_no_room(void **state)
{
	(void)state;
	no_file_can_be_made(EACCES, CONDITION_disk_failing);
	no_file_can_be_made(ENOSPC, CONDITION_disk_full);
	no_file_can_be_made(EDQUOT, CONDITION_disk_full);
	no_file_can_be_made(EROFS, CONDITION_disk_failing);
}

static void keep_spare(struct journal *j, uint64_t seq)
{
	struct segment *g = segment_create(j->folder, seq, j->spares.size, LANE_MAIN, true);
	assert_non_null(g);
	assert_true(spares_keep(&j->spares, g));
	segment_free(&g);
}

static void spares_make_room(int error)
{
	enum { SIZE = 64 << 10 };
	char path[] = "/tmp/sluice-test-XXXXXX";
	struct journal j;
	journal_init(&j, SIZE);
	assert_non_null(mkdtemp(path));
	j.folder = disk_open_top(path);
	spares_find(&j.spares, j.folder, SIZE);
	for (uint64_t i = 1; i <= SPARES_MAX; i++)
		keep_spare(&j, i);
	atomic_store(&no_files, error);
	journal_prepare(&j, 1);
	atomic_store(&no_files, 0);
	assert_int_equal(j.spares.n, 0);
	assert_int_equal(journal_reserve_error(&j), error);
	disk_close(j.folder);
	assert_int_equal(rmdir(path), 0); /* they are gone */
	journal_fini(&j);
}

/* Of a user whose quota was used up they stayed, and no mail was taken. */
static void what_is_kept_for_later_makes_room_on_a_full_disk_and_a_used_up_quota(void **state)
{
	(void)state;
	spares_make_room(ENOSPC);
	spares_make_room(EDQUOT);
}

static void verdicts_and_replacements_survive_a_failed_sync(void **state)
{
	(void)state;
	harness_credit(&h, 100);
	for (int i = 0; i < 10; i++)
		harness_store(&h, 2, 1000);
	harness_wait(&h, &h.narrival, 10);
	harness_wait(&h, &h.nstored, 10);
	int64_t failures = metrics_sum(METRIC_commit_failures);
	int64_t deferred = metrics_sum(METRIC_queue_deferred) + 5; /* of all queues so far */
	for (int i = 0; i < 10; i++) {
		struct envelope *e = harness_take(&h);
		if (i == 5) {
			/* Their lane has its segment: the next sync is that of a commit. */
			while (metrics_sum(METRIC_queue_deferred) < deferred - 3)
				usleep(1000);
			atomic_store(&fail_syncs, 1);
			atomic_store(&fail_opens, 1);
		}
		harness_delivered(&h, e->id, 0, VERDICT_SENT);
		if (i % 2) {
			e->rcpt[0].done = true;
			e->rounds = 1;
			e->due_ms = clock_wall_ms() + 100000000;
			harness_release(&h, e->id, e);
		} else {
			envelope_free(&e);
		}
		usleep(1000);
	}
	for (int i = 0; i < 3000 && metrics_sum(METRIC_queue_deferred) < deferred; i++)
		usleep(10000);
	atomic_store(&fail_opens, 0);
	assert_true(metrics_sum(METRIC_commit_failures) > failures);
	assert_int_equal(metrics_sum(METRIC_queue_deferred), deferred);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 10);
	struct spool_command *c = harness_ask(&h, SPOOL_LIST, 0, 0, 100);
	for (int i = 0; i < c->nrow; i++) {
		assert_true(c->row[i].envelope->rcpt[0].done);
		assert_false(c->row[i].envelope->rcpt[1].done);
	}
	spool_command_free(&c);
}

/* Somebody who keeps a copy: what was written of the segment, and what is said when that is withdrawn. */
static struct {
	struct loop *loop;
	struct content_file *file;
	uint64_t written, before; /* where it ended, and before that */
	struct replicate *cut;
	atomic_int ncut;
} keeper;

static void hear(void *owner, struct note *note)
{
	struct replicate *r = (struct replicate *)note;
	(void)owner;
	if (note->type == REPLICATE_SEGMENT && !keeper.file) {
		keeper.file = r->file;
		keeper.written = r->end;
	} else {
		content_file_unref(r->file);
	}
	if (note->type == REPLICATE_WRITTEN && !keeper.cut) {
		keeper.before = keeper.written;
		keeper.written = r->end;
	}
	if (note->type != REPLICATE_CUT || keeper.cut) {
		free(r);
		return;
	}
	keeper.cut = r;
	atomic_store(&keeper.ncut, 1);
}

static void open_with_keeper(void)
{
	struct buf error = {0};
	if (h.spool)
		harness_close(&h);
	memset(&keeper, 0, sizeof keeper);
	keeper.loop = loop_new("keeper", hear, NULL, NULL);
	h.spool = spool_new(h.conf, h.loop, &error);
	assert_non_null(h.spool);
	spool_replicate(h.spool, keeper.loop, false, true);
	loop_start(keeper.loop);
	spool_start(h.spool);
	buf_fini(&error);
}

static void close_both(void)
{
	harness_close(&h);
	loop_stop(keeper.loop);
	loop_free(&keeper.loop);
	content_file_unref(keeper.file);
	free(keeper.cut);
}

static uint32_t seed_of(const struct content_file *file)
{
	uint8_t bytes[SEGMENT_HEAD];
	struct segment_head head;
	assert_int_equal(pread(file->fd, bytes, sizeof bytes, 0), sizeof bytes);
	assert_true(segment_head_get(bytes, &head));
	return segment_head_seed(&head);
}

/* It had the bytes before the sync: now it is told that the segment ends in front of them, whatever the disk has taken of that. */
static void what_is_cut_off_is_cut_off_the_copy_too(void **state)
{
	struct record end;
	(void)state;
	for (int seals = 0; seals < 2; seals++) {
		open_with_keeper();
		harness_recovered(&h, seals);
		harness_store(&h, 1, 1000);
		harness_wait(&h, &h.nstored, 1);
		atomic_store(&fail_seals, !seals);
		atomic_store(&fail_syncs, 1);
		harness_store(&h, 1, 1000);
		harness_wait(&h, &h.nrefused, 1);
		for (int i = 0; i < WAIT_MS && !atomic_load(&keeper.ncut); i++)
			usleep(1000);
		assert_int_equal(atomic_load(&keeper.ncut), 1);
		assert_int_equal(keeper.cut->end, keeper.before);
		assert_true(keeper.before < keeper.written);
		assert_int_equal(keeper.cut->n, RECORD_HEAD);
		assert_true(record_get(keeper.cut->bytes, seed_of(keeper.file), &end));
		assert_int_equal(end.type, RECORD_END);
		assert_int_equal(end.length, 0);
		close_both();
	}
	harness_open(&h);
	harness_recovered(&h, 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, harness_teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_write_that_fails_refuses_the_batch_and_no_more),
		TEST(a_sync_that_fails_refuses_the_batch_and_no_more),
		TEST(of_two_that_belong_together_both_are_stored_or_neither),
		TEST(a_disk_that_fails_for_long_refuses_mail_until_it_works),
		TEST(a_disk_that_takes_no_file_is_full_only_if_it_has_no_room),
		cmocka_unit_test(
			what_is_kept_for_later_makes_room_on_a_full_disk_and_a_used_up_quota),
		TEST(verdicts_and_replacements_survive_a_failed_sync),
		TEST(what_is_cut_off_is_cut_off_the_copy_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
