/* SPDX-License-Identifier: ISC */
/* The log stays within a small factor of what is needed of it. */
#include "harness.h"

#include "base/metrics.h"
#include "spool/compact.h"

#include <sys/stat.h>

enum { SIZE = 5000, SEGMENT = 256 << 10 };

static int setup(void **state)
{
	harness_setup(state);
	harness_credit(&h, 1000);
	return 0;
}

static uint64_t log_bytes(void)
{
	char *path = mem_printf("%s/log", h.conf->spool);
	DIR *d = opendir(path);
	uint64_t bytes = 0;
	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		struct stat st;
		if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
			bytes += (uint64_t)st.st_size;
	}
	closedir(d);
	free(path);
	return bytes;
}

static void defer(struct envelope *e, int64_t delay_ms)
{
	e->due_ms = clock_wall_ms() + delay_ms;
	e->rounds++;
	harness_release(&h, e->id, e);
}

/* n messages come; of each `every` of them one is put off, the others are delivered. */
static int traffic(int n, int every)
{
	int kept = 0;
	for (int i = 0; i < n; i++) {
		harness_store(&h, 1, SIZE);
		struct envelope *e = harness_take(&h);
		if (i % every == 0) {
			/* Some minutes or hours: different lanes. */
			defer(e, INT64_C(300000) << (i / every % 6));
			kept++;
			continue;
		}
		harness_release(&h, e->id, NULL);
		envelope_free(&e);
	}
	return kept;
}

/* What is needed: content and envelope of each; and what is allowed beside: open segments, the
 * reserve, and a few. */
static uint64_t allowed(int messages)
{
	return 5 * (uint64_t)messages * (SIZE + 400) / 2 + 8 * SEGMENT;
}

static void wait_for_room(int messages)
{
	for (int i = 0; i < 3000 && log_bytes() > allowed(messages); i++)
		usleep(10000);
	assert_in_range(log_bytes(), 0, allowed(messages));
}

static void what_is_left_of_much_traffic_takes_little_room(void **state)
{
	(void)state;
	int kept = traffic(3000, 20);
	wait_for_room(kept);
	assert_true(metrics_sum(METRIC_compacted_bytes) > 0);
	harness_recovered(&h, kept);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, kept);
	harness_credit(&h, 1000);
	spool_command_free(&(struct spool_command *){harness_ask(&h, SPOOL_FLUSH, 0, 0, 0)});
	for (int i = 0; i < kept; i++) {
		struct envelope *e = harness_take(&h); /* looks at the content */
		assert_int_equal(e->rounds, 1);
		harness_release(&h, e->id, NULL);
		envelope_free(&e);
	}
	harness_recovered(&h, 0);
}

static void messages_being_worked_on_move_with_their_verdicts(void **state)
{
	(void)state;
	enum { BUSY = 50 };
	struct envelope *busy[BUSY];
	int moved = h.nmoved;
	h.conf->content_memory_limit = 0; /* their content is read from the log */
	for (int i = 0; i < BUSY; i++) {
		harness_store(&h, 2, SIZE);
		busy[i] = harness_take(&h);
		harness_delivered(&h, busy[i]->id, 0, VERDICT_SENT);
		traffic(40, 1000);
	}
	wait_for_room(BUSY + 1);
	for (int i = 0; i < 3000 && h.nmoved == moved; i++) {
		usleep(10000);
		ev_run(h.loop->ev, EVRUN_NOWAIT);
	}
	assert_true(h.nmoved > moved);
	char bytes[SIZE];
	assert_int_equal(content_read(h.moved, 0, bytes, SIZE), SIZE);
	assert_int_equal(bytes[0], 'a' + SIZE % 26);
	for (int i = 0; i < BUSY; i += 2)
		harness_delivered(&h, busy[i]->id, 1, VERDICT_SENT);
	harness_count(&h);
	harness_crash(&h);
	harness_open(&h);
	harness_credit(&h, 1000);
	int left = 0;
	while (left < BUSY / 2) {
		struct envelope *e = harness_take(&h);
		if (e->nrcpt == 2) {
			assert_true(e->rcpt[0].done);
			assert_false(e->rcpt[1].done);
			left++;
		}
		envelope_free(&e);
	}
	for (int i = 0; i < BUSY; i++)
		envelope_free(&busy[i]);
}

static void a_start_passes_over_what_holds_content_only(void **state)
{
	(void)state;
	int kept = traffic(600, 2);
	/* The deferred lie in lanes; what the main lane holds is content, in segments of its own. */
	for (int i = 0; i < 3000 && harness_segments(&h) < 2; i++)
		usleep(10000);
	char *line = mem_printf("grep -qs skip '%s/log/checkpoint'", h.conf->spool);
	int missing = 1;
	for (int i = 0; i < 3000 && (missing = system(line)) != 0; i++)
		usleep(10000);
	assert_int_equal(missing, 0);
	harness_recovered(&h, kept); /* the last finish is written, too */
	harness_crash(&h);
	free(line);
	harness_open(&h);
	harness_recovered(&h, kept);
	harness_credit(&h, 1000);
	spool_command_free(&(struct spool_command *){harness_ask(&h, SPOOL_FLUSH, 0, 0, 0)});
	for (int i = 0; i < kept; i++) {
		struct envelope *e = harness_take(&h);
		harness_release(&h, e->id, NULL);
		envelope_free(&e);
	}
	harness_recovered(&h, 0);
	assert_int_equal(harness_files(&h, "quarantine"), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, harness_teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_is_left_of_much_traffic_takes_little_room),
		TEST(messages_being_worked_on_move_with_their_verdicts),
		TEST(a_start_passes_over_what_holds_content_only),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
