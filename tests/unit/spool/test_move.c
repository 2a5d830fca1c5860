/* SPDX-License-Identifier: ISC */
/* A file system that renames, and knows none of the flags of renameat2(2). This test links a disk of its own, the real one on that. */
#include <errno.h>
#include <stdio.h>

static int flagless_renameat2(int from, const char *name, int to, const char *to_name,
			      unsigned flags);

#define renameat2 flagless_renameat2
#include "spool/disk.c"
#undef renameat2

#include "tests/unit/base/unit.h"

#include <stdlib.h>

static int flagless_renameat2(int from, const char *name, int to, const char *to_name,
			      unsigned flags)
{
	if (flags == 0)
		return renameat(from, name, to, to_name);
	errno = EINVAL;
	return -1;
}

static char path[] = "/tmp/test_move.XXXXXX";
static int folder, aside;

static int start(void **state)
{
	(void)state;
	if (!mkdtemp(path))
		return -1;
	folder = disk_open_top(path);
	if (disk_make_folder(folder, "aside") != 0)
		return -1;
	aside = disk_open(folder, "aside", O_RDONLY | O_DIRECTORY);
	return folder >= 0 && aside >= 0 ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	disk_unlink(aside, "file");
	unlinkat(aside, "queue", AT_REMOVEDIR);
	disk_unlink(folder, "file");
	unlinkat(folder, "aside", AT_REMOVEDIR);
	disk_close(aside);
	disk_close(folder);
	return rmdir(path);
}

static void lay(const char *text)
{
	struct iovec v = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
	int fd = disk_open(folder, "file", O_WRONLY | O_CREAT | O_EXCL);
	assert_true(fd >= 0);
	assert_int_equal(disk_write(fd, &v, 1, 0), 0);
	disk_close(fd);
}

static void what_is_put_aside_takes_the_place_of_nothing(void **state)
{
	char text[10] = "";
	(void)state;
	lay("one");
	assert_int_equal(disk_move(folder, "file", aside, "file"), 0);
	lay("two");
	assert_int_equal(disk_move(folder, "file", aside, "file"), -1);
	assert_int_equal(errno, EEXIST);
	int fd = disk_open(aside, "file", O_RDONLY);
	assert_int_equal(disk_read(fd, text, 3, 0), 3);
	assert_string_equal(text, "one");
	disk_close(fd);
	assert_int_equal(disk_move(folder, "none", aside, "none"), -1);
	assert_int_equal(errno, ENOENT);
}

static void so_it_is_with_a_queue(void **state)
{
	(void)state;
	assert_int_equal(disk_make_folder(folder, "queue"), 0);
	assert_int_equal(disk_move(folder, "queue", aside, "queue"), 0);
	assert_int_equal(faccessat(aside, "queue", F_OK, 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_put_aside_takes_the_place_of_nothing),
		cmocka_unit_test(so_it_is_with_a_queue),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
