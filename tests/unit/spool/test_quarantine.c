/* SPDX-License-Identifier: ISC */
/* What is put aside is there, as a whole, before the log forgets it. This test links a disk of its own: the real one, which can
 * leave what a kill leaves, and is asked what was synced by then. */
#define disk_open real_disk_open
#define disk_write real_disk_write
#define disk_unlink real_disk_unlink
#define disk_move real_disk_move
#define disk_sync real_disk_sync
#include "spool/disk.c"
#undef disk_open
#undef disk_write
#undef disk_unlink
#undef disk_move
#undef disk_sync

#include "harness.h"

#include "spool/record.h"

#include <dirent.h>
#include <stdatomic.h>

static atomic_bool killed; /* nothing is written to quarantine/ any more, nor removed there */
/* Names of quarantine/ and of large/ that are new, or gone, and not synced; finishes that were written meanwhile, and others. */
static atomic_int unsynced, unsynced_large, finished_early, finished;

int disk_open(int folder, const char *name, int flags);

static bool path_has(int fd, const char *part)
{
	char link[64], path[300];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof path - 1);
	path[n > 0 ? n : 0] = '\0';
	return strstr(path, part);
}

int disk_open(int folder, const char *name, int flags)
{
	unsynced += flags & O_CREAT && path_has(folder, "/quarantine");
	return real_disk_open(folder, name, flags);
}

static bool has_finish(const struct iovec *v, size_t n)
{
	static const uint8_t head[] = {'s', 'R', RECORD_FINISH};
	bool has = false;
	for (size_t i = 0; i < n; i++)
		has |= memmem(v[i].iov_base, v[i].iov_len, head, sizeof head) != NULL;
	return has;
}

int disk_write(int fd, struct iovec *v, size_t n, uint64_t offset)
{
	if (killed && path_has(fd, "/quarantine/")) {
		errno = EIO;
		return -1;
	}
	if (path_has(fd, "/log/") && has_finish(v, n)) {
		finished++;
		finished_early += unsynced > 0 || unsynced_large > 0;
	}
	return real_disk_write(fd, v, n, offset);
}

int disk_unlink(int folder, const char *name)
{
	return killed && path_has(folder, "/quarantine") ? 0 : real_disk_unlink(folder, name);
}

int disk_move(int from, const char *name, int to, const char *to_name)
{
	int result = real_disk_move(from, name, to, to_name);
	unsynced += result == 0 && path_has(to, "/quarantine");
	unsynced_large += result == 0 && path_has(from, "/large");
	return result;
}

int disk_sync(int fd)
{
	if (path_has(fd, "/quarantine"))
		unsynced = 0;
	if (path_has(fd, "/large"))
		unsynced_large = 0;
	return real_disk_sync(fd);
}

static int setup(void **state)
{
	killed = false;
	unsynced = unsynced_large = finished_early = finished = 0;
	return harness_setup(state);
}

static void store(int n, size_t size)
{
	for (int i = 0; i < n; i++) {
		harness_store(&h, 1, size);
		harness_wait(&h, &h.nstored, h.nstored + 1);
	}
}

/* Of the first message in the log, whose text is all of one letter. */
static void damage_a_content(void)
{
	harness_shell("f=$(ls '%s'/log/*.seg | head -n 1); at=$(grep -abo -m 1 aaaaaaaaaaaaaaaa $f "
		      "| head -n 1 | cut -d: -f1); "
		      "printf '?' | dd of=$f bs=1 seek=$at conv=notrunc status=none",
		      h.conf->spool, "");
}

/* Bytes of the smallest file there. */
static long smallest_file(void)
{
	char *path = mem_printf("%s/quarantine", h.conf->spool);
	DIR *d = opendir(path);
	long least = LONG_MAX;
	for (const struct dirent *e; (e = readdir(d));) {
		struct stat st;
		if (e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &st, 0) == 0 &&
		    st.st_size < least)
			least = (long)st.st_size;
	}
	closedir(d);
	free(path);
	return least;
}

/* A start was killed when it had made the names of the copies. The next one took them for all, and its message was gone. */
static void half_a_copy_is_none(void **state)
{
	(void)state;
	store(3, 312);
	harness_close(&h);
	damage_a_content();
	killed = true;
	harness_open(&h);
	harness_recovered(&h, 3);
	harness_close(&h);
	killed = false;
	harness_open(&h);
	harness_recovered(&h, 2);
	assert_int_equal(harness_files(&h, "quarantine"), 3); /* the bytes, envelope, content */
	assert_true(smallest_file() > RECORD_HEAD);
}

/* Else the power takes what was put aside, and the log has let go of it. */
static void what_is_put_aside_is_stable_before_its_message_is_done(void **state)
{
	(void)state;
	store(3, 312);
	harness_close(&h);
	damage_a_content();
	harness_open(&h);
	harness_recovered(&h, 2);
	harness_close(&h);
	assert_int_equal(finished, 1);
	assert_int_equal(finished_early, 0);
}

static void large_content_is_aside_before_its_message_is_done(void **state)
{
	(void)state;
	struct spool_store *s = harness_new_large(&h, ident_new());
	s->adopted = false;
	loop_post(spool_loop(h.spool), &s->note);
	harness_wait(&h, &h.nstored, 1);
	harness_close(&h);
	harness_shell("for f in '%s'/large/*; do echo more >> $f; done", h.conf->spool, "");
	harness_open(&h);
	harness_recovered(&h, 0);
	harness_close(&h);
	assert_int_equal(harness_files(&h, "quarantine"), 2); /* envelope, content */
	assert_int_equal(finished, 1);
	assert_int_equal(finished_early, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, harness_teardown)
	const struct CMUnitTest tests[] = {
		TEST(half_a_copy_is_none),
		TEST(what_is_put_aside_is_stable_before_its_message_is_done),
		TEST(large_content_is_aside_before_its_message_is_done),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
