/* SPDX-License-Identifier: ISC */
#include "harness.h"

#include "base/content.h"
#include "base/metrics.h"
#include "spool/disk.h"
#include "spool/lane.h"
#include "spool/spare.h"
#include "spool/survey.h"

#include <dirent.h>
#include <fcntl.h>

enum { SIZE = 64 << 10, BYTES = 3000, ID = 77 };

static char folder_name[] = "/tmp/sluice-test-XXXXXX";
static int folder;
static struct spares spares;
static uint64_t seq;

static int setup(void **state)
{
	(void)state;
	strcpy(folder_name, "/tmp/sluice-test-XXXXXX");
	assert_non_null(mkdtemp(folder_name));
	folder = open(folder_name, O_RDONLY | O_DIRECTORY);
	spares_find(&spares, folder, SIZE);
	seq = 1;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(folder);
	harness_shell("rm -r '%s'", folder_name, "");
	return 0;
}

static bool there(const char *name)
{
	return faccessat(folder, name, F_OK, 0) == 0;
}

static void append(struct segment *g, int records, uint64_t first_id)
{
	static const char payload[BYTES];
	struct lane lane;
	struct place place;
	lane_init(&lane, LANE_MAIN, SIZE);
	lane.current = g;
	for (int i = 0; i < records; i++)
		lane_add(&lane,
			 &(struct record){.type = RECORD_CONTENT,
					  .length = BYTES,
					  .id = first_id + (uint64_t)i},
			 payload, true, &place);
	assert_true(lane_write(&lane));
	g->dirty = false;
	lane_fini(&lane);
}

/* A segment filled with records becomes a spare one, and that a segment again. */
static struct segment *second_life(void)
{
	struct segment *g = segment_create(folder, seq++, SIZE, LANE_MAIN, true);
	assert_non_null(g);
	append(g, 18, 1);
	assert_true(spares_keep(&spares, g));
	segment_free(&g);
	g = spares_take(&spares, seq++, LANE_MAIN, false);
	assert_non_null(g);
	return g;
}

static struct survey look_at(struct segment *g, size_t *messages)
{
	struct survey v;
	struct replay r = {.segment = &g, .nsegment = 1};
	survey_segment(&v, &r, 0);
	free(found_take(&r.found, messages));
	found_fini(&r.found);
	return v;
}

static void one_is_the_next_segment(void **state)
{
	(void)state;
	size_t messages;
	struct segment *g = second_life();
	assert_true(there("0000000000000002.seg"));
	assert_false(there("0000000000000001.seg") || there("spare0"));
	assert_true(g->size == SIZE && g->end == SEGMENT_BEGIN && g->head.reused);
	struct survey v = look_at(g, &messages);
	assert_int_equal(messages, 0);
	assert_true(v.n == 0 && v.end == SEGMENT_BEGIN && !v.sealed && !v.cut_short);
	survey_fini(&v);
	append(g, 2, ID);
	v = look_at(g, &messages);
	assert_int_equal(messages, 2);
	assert_true(v.n == 0 && v.end == g->end);
	survey_fini(&v);
	segment_free(&g);
}

/* The end of a write is lost: there lies what was there before. */
static void what_is_torn_in_it_is_told(void **state)
{
	(void)state;
	size_t messages;
	struct segment *g = second_life();
	append(g, 2, ID);
	uint64_t whole = g->end, torn = whole + RECORD_HEAD + 8;
	append(g, 1, ID + 2);
	static const char before[BYTES] = "something else";
	struct iovec lost = {.iov_base = (void *)before, .iov_len = BYTES - 8};
	assert_int_equal(disk_write(g->file->fd, &lost, 1, torn), 0);
	struct survey v = look_at(g, &messages);
	assert_true(v.n == 1 && v.end == whole);
	assert_true(v.region[0].from == whole && !v.region[0].damage && !v.region[0].followed);
	survey_fini(&v);
	segment_free(&g);
}

static void what_is_lost_in_it_is_damage_where_it_was_synced(void **state)
{
	(void)state;
	size_t messages;
	struct segment *g = second_life();
	append(g, 2, ID);
	g->synced = g->end;
	append(g, 1, ID + 2); /* says that the two are safe */
	static const char before[BYTES] = "something else";
	struct iovec lost = {.iov_base = (void *)before, .iov_len = RECORD_HEAD};
	assert_int_equal(disk_write(g->file->fd, &lost, 1, SEGMENT_BEGIN), 0);
	struct survey v = look_at(g, &messages);
	assert_int_equal(messages, 2);
	assert_true(v.n == 1 && v.region[0].damage);
	survey_fini(&v);
	segment_free(&g);
}

static void one_that_is_read_is_not_used(void **state)
{
	(void)state;
	struct segment *g = segment_create(folder, seq++, SIZE, LANE_MAIN, true);
	struct content *c = content_in_file(g->file, SEGMENT_BEGIN, 100);
	assert_false(spares_keep(&spares, g));
	content_unref(c);
	assert_true(spares_keep(&spares, g));
	assert_true(there("spare0"));
	segment_free(&g);
}

static void there_are_few_and_of_one_size(void **state)
{
	(void)state;
	struct segment *g;
	for (int i = 0; i <= SPARES_MAX; i++) {
		g = segment_create(folder, seq++, SIZE, LANE_MAIN, i == 0);
		assert_int_equal(spares_keep(&spares, g), i < SPARES_MAX);
		segment_free(&g);
	}
	assert_true(there("spare0") && there("spare1"));
	g = segment_create(folder, seq++, SIZE / 2, LANE_MAIN, false);
	spares_drop(&spares);
	assert_false(there("spare0") || there("spare1"));
	assert_false(spares_keep(&spares, g));
	spares.unwanted = true;
	g->size = SIZE;
	assert_false(spares_keep(&spares, g));
	segment_free(&g);
}

static void a_start_finds_them(void **state)
{
	(void)state;
	struct segment *g;
	for (int i = 0; i < SPARES_MAX; i++) {
		g = segment_create(folder, seq++, SIZE, LANE_MAIN, i == 0);
		assert_true(spares_keep(&spares, g));
		segment_free(&g);
	}
	spares_find(&spares, folder, SIZE);
	assert_int_equal(spares.n, SPARES_MAX);
	g = spares_take(&spares, seq++, LANE_MAIN, false);
	assert_non_null(g);
	segment_free(&g);
	spares_find(&spares, folder, SIZE * 2);
	assert_int_equal(spares.n, 0);
	assert_false(there("spare0") || there("spare1"));
	assert_null(spares_take(&spares, seq++, LANE_MAIN, false));
}

static bool spare_is_there(void)
{
	char *path = mem_printf("%s/log/spare0", h.conf->spool);
	bool is = access(path, F_OK) == 0;
	free(path);
	return is;
}

/* Slowly enough that the segment before goes, by the clock and by what is written, before the next is full. */
static void pass_mail_until_a_spare_is_there(void)
{
	for (int i = 0; i < 3000 && !spare_is_there(); i++) {
		usleep(10000);
		harness_pass(&h, 1);
	}
	assert_true(spare_is_there());
}

/* Numbers are given one after the other. */
static int64_t newest_segment(void)
{
	char *path = mem_printf("%s/log", h.conf->spool);
	DIR *log = opendir(path);
	uint64_t newest = 0, number;
	assert_non_null(log);
	for (struct dirent *it; (it = readdir(log));)
		if (segment_name_parse(it->d_name, &number) && number > newest)
			newest = number;
	closedir(log);
	free(path);
	return (int64_t)newest;
}

static int64_t segments_without_a_file_made(void)
{
	return newest_segment() - metrics_sum(METRIC_files_created);
}

/* Where the pool comes late others are made at once (ahead.h), each with a file of its own: they count for nothing, and it goes on. */
static void mail_that_comes_and_goes_lives_on_spare_files(void **state)
{
	enum { ENOUGH = 5, ROUNDS_MAX = 100 };
	(void)state;
	harness_credit(&h, 1000);
	pass_mail_until_a_spare_is_there();
	assert_true(metrics_sum(METRIC_files_created) > 1);
	int64_t before = segments_without_a_file_made();
	for (int i = 0; i < ROUNDS_MAX && segments_without_a_file_made() < before + ENOUGH; i++) {
		harness_pass(&h, 40); /* less than a segment's worth: the spare is the next */
		pass_mail_until_a_spare_is_there();
	}
	assert_true(segments_without_a_file_made() >= before + ENOUGH);
	harness_store(&h, 1, 5000);
	struct envelope *e = harness_take(&h);
	envelope_free(&e);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 1);
	assert_int_equal(harness_files(&h, "quarantine"), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(one_is_the_next_segment),
		TEST(what_is_torn_in_it_is_told),
		TEST(what_is_lost_in_it_is_damage_where_it_was_synced),
		TEST(one_that_is_read_is_not_used),
		TEST(there_are_few_and_of_one_size),
		TEST(a_start_finds_them),
		HARNESS_TEST(mail_that_comes_and_goes_lives_on_spare_files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
