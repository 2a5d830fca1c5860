/* SPDX-License-Identifier: ISC */
/* A folder that can't be read to its end. This test links a disk of its own, the real one with that fault. */
#include <dirent.h>
#include <errno.h>

static struct dirent *listing_readdir(DIR *);

#define readdir listing_readdir
#include "spool/disk.c"
#undef readdir

#include "harness.h"

#include "spool/spool_check.h"
#include "spool/spool_file.h"

static const char *broken = "/log";
static int left = -1; /* names of that folder that can be read; -1: all */

static bool is_broken(DIR *d)
{
	char link[40], path[500];
	snprintf(link, sizeof link, "/proc/self/fd/%d", dirfd(d));
	ssize_t n = readlink(link, path, sizeof path), end = (ssize_t)strlen(broken);
	return n > end && memcmp(path + n - end, broken, (size_t)end) == 0;
}

static struct dirent *listing_readdir(DIR *d)
{
	if (left < 0 || !is_broken(d))
		return readdir(d);
	if (left-- > 0)
		return readdir(d);
	left = 0;
	errno = EIO;
	return NULL;
}

static int setup(void **state)
{
	left = -1;
	broken = "/log";
	return harness_setup(state);
}

static void count_name(void *owner, const char *name)
{
	(void)name;
	++*(int *)owner;
	errno = ENOTDIR; /* of whatever it has tried */
}

static void a_listing_that_breaks_off_says_so(void **state)
{
	char *path = mem_printf("%s/log", h.conf->spool);
	int log = disk_open_top(path), n = 0;
	(void)state;
	free(path);
	harness_close(&h); /* its threads read folders, too */
	assert_true(log >= 0);
	assert_int_equal(disk_each(log, count_name, &n), 0);
	assert_true(n > 0);
	left = 1;
	assert_int_equal(disk_each(log, count_name, &n), -1);
	assert_int_equal(errno, EIO);
	disk_close(log);
}

static uint64_t store_large(void)
{
	static char bytes[SPOOL_CONTENT_INLINE_MAX + 1];
	struct spool_store *s = mem_zalloc(sizeof *s);
	s->note.type = SPOOL_STORE;
	s->reply_to = h.loop;
	s->envelope = harness_envelope(1);
	s->envelope->size = sizeof bytes;
	uint64_t id = s->id = s->envelope->id;
	memset(bytes, 'a' + (int)(sizeof bytes % 26), sizeof bytes);
	s->file = spool_file_new(h.spool, id);
	assert_non_null(s->file);
	assert_int_equal(spool_file_write(s->file, bytes, sizeof bytes), 0);
	spool_post(h.spool, &s->note);
	harness_wait(&h, &h.nstored, 1);
	return id;
}

/* What names the large content lies in a segment that is not seen. */
static void a_start_that_does_not_see_all_segments_removes_no_content(void **state)
{
	(void)state;
	struct buf error = {0};
	uint64_t id = store_large();
	assert_int_equal(harness_files(&h, "large"), 1);
	harness_crash(&h);
	for (left = 0; left < 4; left++) {
		int most = left;
		assert_null(spool_new(h.conf, h.loop, &error));
		assert_non_null(strstr(buf_cstr(&error), "log"));
		buf_fini(&error);
		left = most;
		assert_int_equal(harness_files(&h, "large"), 1);
	}
	left = -1;
	harness_open(&h);
	harness_credit(&h, 10);
	struct envelope *e = harness_take(&h);
	assert_int_equal(e->id, id);
	envelope_free(&e);
}

static void find_nothing(void *owner, const struct check_finding *f)
{
	(void)owner;
	(void)f;
	fail();
}

static void a_check_that_does_not_see_all_content_says_so(void **state)
{
	(void)state;
	struct check check = {.found = find_nothing};
	struct buf error = {0};
	store_large();
	harness_crash(&h);
	broken = "/large";
	left = 0;
	assert_false(spool_check(h.conf, &check, &error));
	assert_non_null(strstr(buf_cstr(&error), "/large: "));
	buf_fini(&error);
	left = -1;
	harness_open(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_listing_that_breaks_off_says_so, setup,
						harness_teardown),
		cmocka_unit_test_setup_teardown(
			a_start_that_does_not_see_all_segments_removes_no_content, setup,
			harness_teardown),
		cmocka_unit_test_setup_teardown(a_check_that_does_not_see_all_content_says_so,
						setup, harness_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
