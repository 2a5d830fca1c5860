/* SPDX-License-Identifier: ISC */
/* How much is read of what comes due before clients are served again, and what there is behind a closed fence. This test links a disk of its own, the real one that counts. */
#define disk_read real_disk_read
#include "spool/disk.c"
#undef disk_read

#include "harness.h"

#include "base/fence.h"
#include "spool/catalog.h"
#include "spool/commit.h"
#include "spool/recover.h"

enum { MESSAGES = 30, BYTES = 400000, STEP_BYTES = 1 << 20 };

static long bytes;

ssize_t disk_read(int fd, void *to, size_t len, uint64_t offset)
{
	ssize_t n = real_disk_read(fd, to, len, offset);
	bytes += n;
	return n;
}

static int setup(void **state)
{
	(void)state;
	harness_init(&h);
	h.conf->segment_size = 16 << 20;
	harness_open(&h);
	return 0;
}

/* As a start has it, in this thread. */
static struct spool *open_here(void)
{
	struct buf error = {0};
	struct spool *s = spool_new(h.conf, h.loop, &error);
	assert_non_null(s);
	s->loop->now_ms = clock_steady_ms();
	recover_here(s);
	assert_true(commit_now(s));
	buf_fini(&error);
	return s;
}

static void a_step_reads_a_megabyte_or_one_message_more(void **state)
{
	(void)state;
	for (int i = 0; i < MESSAGES; i++) {
		harness_store(&h, 1, BYTES);
		harness_wait(&h, &h.nstored, i + 1);
	}
	harness_close(&h);
	struct spool *s = open_here();
	s->credit = MESSAGES;
	long all = 0;
	int steps = 0;
	for (s->more = true; s->more; steps++) {
		bytes = 0;
		runner_run(s);
		assert_true(bytes < STEP_BYTES + BYTES + (64 << 10));
		all += bytes;
		assert_true(commit_now(s)); /* clients have their turn */
	}
	/* All of it was looked at, or there is nothing to bound. */
	assert_true(all > (long)MESSAGES * BYTES);
	assert_true(steps > MESSAGES * BYTES / (STEP_BYTES + BYTES));
	spool_free(&s);
	harness_open(&h);
	harness_recovered(&h, MESSAGES);
}

/* Neither round and round meanwhile, nor asleep when it opens. */
static void assert_looks_again_soon(const struct spool *s)
{
	int64_t now_ms = clock_wall_ms();
	int64_t next_ms = runner_next_ms(s);
	assert_true(next_ms > now_ms && next_ms <= now_ms + 2000);
}

static void behind_a_closed_fence_it_looks_again_after_a_pause(void **state)
{
	(void)state;
	uint64_t id = harness_store(&h, 1, 100);
	harness_wait(&h, &h.nstored, 1);
	harness_close(&h);
	struct spool *s = open_here();
	s->credit = 2;
	fence_set(0);
	runner_run(s);
	assert_int_equal(s->incoming.n, 1);
	assert_looks_again_soon(s);
	struct stub *stub = catalog_find(&s->catalog, id);
	stub_enter(s, stub, STUB_DEFERRED); /* due since it came */
	runner_run(s);
	assert_int_equal(s->deferred.n, 1);
	assert_looks_again_soon(s);
	fence_set(FENCE_NEVER);
	runner_run(s);
	assert_int_equal(s->deferred.n, 0);
	assert_int_equal(runner_next_ms(s), INT64_MAX);
	assert_true(commit_now(s));
	spool_free(&s);
	harness_open(&h);
	harness_recovered(&h, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_step_reads_a_megabyte_or_one_message_more, setup,
						harness_teardown),
		cmocka_unit_test_setup_teardown(behind_a_closed_fence_it_looks_again_after_a_pause,
						setup, harness_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
