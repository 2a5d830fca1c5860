/* SPDX-License-Identifier: ISC */
/* A message and its copy for an archive are stored together: whatever part of their batch the power leaves, there are both or
 * there is none. Each set of its sectors is tried. */
#include "harness.h"

#include "spool/repair.h"
#include "spool/segment.h"
#include "spool/spool_look.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { SECTOR = 512, SECTORS_MAX = 10 };

/* The segment before the batch, and after it. */
static struct image {
	uint8_t *bytes;
	size_t size;
} before, after;
static char *path;
static off_t sector[SECTORS_MAX]; /* in which they differ */
static int nsector;
static uint64_t ids[2];

static void read_image(struct image *i)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	i->size = (size_t)st.st_size;
	i->bytes = mem_alloc(i->size);
	assert_int_equal(pread(fd, i->bytes, i->size, 0), st.st_size);
	close(fd);
}

static void find_segment(void)
{
	char name[SEGMENT_NAME];
	for (uint64_t seq = 1; seq < 100; seq++) {
		path = mem_printf("%s/log/%s", h.conf->spool, segment_name(seq, name));
		if (access(path, F_OK) == 0)
			return;
		free(path);
	}
	fail_msg("there is no segment");
}

static void find_sectors(void)
{
	assert_int_equal(before.size, after.size);
	nsector = 0;
	for (size_t at = 0; at < after.size; at += SECTOR)
		if (memcmp(before.bytes + at, after.bytes + at, SECTOR) != 0) {
			assert_true(nsector < SECTORS_MAX);
			sector[nsector++] = (off_t)at;
		}
}

static void store_pair(size_t copy_size, size_t size)
{
	struct spool_store *s = harness_new_store(&h, 1, size);
	s->with = harness_new_store(&h, 1, copy_size);
	s->with->reply_to = NULL;
	ids[0] = s->with->envelope->id;
	ids[1] = s->envelope->id;
	int n = h.nstored;
	spool_post(h.spool, &s->note);
	harness_wait(&h, &h.nstored, n + 1);
}

/* The queue as a power cut leaves it that keeps these sectors of the last batch. */
static void cut(unsigned kept)
{
	int fd = open(path, O_RDWR | O_TRUNC);
	assert_int_equal(pwrite(fd, before.bytes, before.size, 0), (ssize_t)before.size);
	for (int i = 0; i < nsector; i++)
		if (kept & 1U << i)
			assert_int_equal(pwrite(fd, after.bytes + sector[i], SECTOR, sector[i]),
					 SECTOR);
	close(fd);
}

static void judge(unsigned kept, bool first, bool second)
{
	if (first != second)
		fail_msg("of %d sectors %#x are there: the %s is alone", nsector, kept,
			 first ? "copy" : "message");
	if (kept == (1U << nsector) - 1)
		assert_true(first && second);
}

static void found(void *owner, const struct check_finding *f)
{
	(void)owner;
	assert_int_equal(f->fault, CHECK_TORN);
}

static void look_offline(unsigned kept, int others)
{
	struct buf error = {0};
	struct check check = {.found = found};
	uint64_t id[10];
	struct spool_look *l = spool_look_new(h.conf, h.conf->spool, &error);
	assert_non_null(l);
	size_t n = spool_look_ids(l, 0, id, 10);
	bool there[2] = {false, false};
	for (size_t i = 0; i < n; i++)
		for (int k = 0; k < 2; k++)
			there[k] |= id[i] == ids[k];
	judge(kept, there[0], there[1]);
	assert_int_equal((int)n - there[0] - there[1], others);
	spool_look_free(&l);
	assert_true(spool_check(h.conf, &check, &error));
	size_t counted = 0;
	for (int q = 0; q <= SPOOL_HOLD; q++)
		counted += check.summary.messages[q];
	assert_int_equal(counted, n);
	buf_fini(&error);
}

static bool is_listed(uint64_t id)
{
	struct spool_command *c = harness_ask(&h, SPOOL_SHOW, id, 0, 0);
	bool there = c->nrow == 1;
	spool_command_free(&c);
	return there;
}

static void start(unsigned kept, int others)
{
	harness_open(&h);
	bool first = is_listed(ids[0]), second = is_listed(ids[1]);
	judge(kept, first, second);
	assert_int_equal(harness_count(&h) - first - second, others);
	harness_close(&h);
	if (harness_files(&h, "quarantine") > 0)
		fail_msg("of %d sectors %#x are there: a power cut is taken for damage", nsector,
			 kept);
}

static void in_each_cut(size_t copy_size, size_t size, int others)
{
	for (int i = 0; i < others; i++) {
		harness_store(&h, 1, 300);
		harness_wait(&h, &h.nstored, i + 1);
	}
	find_segment();
	read_image(&before);
	store_pair(copy_size, size);
	read_image(&after);
	find_sectors();
	harness_crash(&h);
	harness_shell("cp -a --sparse=always '%s' '%s.kept'", h.conf->spool, h.conf->spool);
	assert_true(nsector >= 2);
	for (unsigned kept = 0; kept < 1U << nsector; kept++) {
		harness_shell("rm -rf '%s'", h.conf->spool, "");
		harness_shell("cp -a --sparse=always '%s.kept' '%s'", h.conf->spool, h.conf->spool);
		cut(kept);
		look_offline(kept, others);
		if (nsector <= 6 || kept % 13 == 0)
			start(kept, others);
	}
	free(before.bytes);
	free(after.bytes);
	free(path);
}

static void small_ones(void **state)
{
	(void)state;
	in_each_cut(300, 200, 0);
}

static void behind_others(void **state)
{
	(void)state;
	in_each_cut(500, 700, 2);
}

static void each_over_several_sectors(void **state)
{
	(void)state;
	in_each_cut(1400, 1200, 1);
}

/* The copy goes its way; what it was stored with stays, whatever of the log says how far it was synced. */
static void who_was_there_once_takes_nobody_with_it(void **state)
{
	(void)state;
	harness_credit(&h, 1);
	store_pair(300, 200);
	struct envelope *e = harness_take(&h);
	uint64_t left = e->id == ids[0] ? ids[1] : ids[0];
	harness_release(&h, e->id, NULL);
	envelope_free(&e);
	harness_recovered(&h, 1);
	harness_crash(&h);
	harness_open(&h);
	harness_recovered(&h, 1);
	assert_true(is_listed(left));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		HARNESS_TEST(small_ones),
		HARNESS_TEST(behind_others),
		HARNESS_TEST(each_over_several_sectors),
		HARNESS_TEST(who_was_there_once_takes_nobody_with_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
