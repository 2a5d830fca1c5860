/* SPDX-License-Identifier: ISC */
/* Calls on files, on file systems that lack some of them. */
#include "spool/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/sluice-disk-XXXXXX";
static int folder;

static int make_folder(void **state)
{
	(void)state;
	folder = mkdtemp(path) ? disk_open_top(path) : -1;
	return folder < 0;
}

static int remove_folder(void **state)
{
	(void)state;
	disk_close(folder);
	return rmdir(path);
}

static void make_file(const char *name)
{
	int fd = disk_open(folder, name, O_WRONLY | O_CREAT | O_EXCL);
	assert_true(fd >= 0);
	disk_close(fd);
}

static ino_t number_of(const char *name)
{
	struct stat st;
	return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino : 0;
}

static void moves_to_no_name_that_is_taken(void)
{
	make_file("one");
	make_file("other");
	ino_t one = number_of("one"), other = number_of("other");
	assert_int_equal(disk_move(folder, "one", folder, "other"), -1);
	assert_int_equal(errno, EEXIST);
	assert_true(number_of("one") == one && number_of("other") == other);
	assert_int_equal(symlinkat("nowhere", folder, "link"), 0);
	assert_int_equal(disk_move(folder, "one", folder, "link"), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(disk_move(folder, "one", folder, "free"), 0);
	assert_true(number_of("free") == one && number_of("one") == 0);
	assert_int_equal(disk_move(folder, "one", folder, "two"), -1);
	assert_int_equal(errno, ENOENT);
	disk_unlink(folder, "free");
	disk_unlink(folder, "other");
	disk_unlink(folder, "link");
}

static void moves_a_folder(void)
{
	assert_int_equal(disk_make_folder(folder, "past"), 0);
	assert_int_equal(disk_make_folder(folder, "aside"), 0);
	assert_int_equal(disk_move(folder, "past", folder, "aside"), -1);
	assert_int_equal(errno, EEXIST);
	assert_int_equal(disk_move(folder, "past", folder, "aside/past"), 0);
	assert_int_equal(unlinkat(folder, "aside/past", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(folder, "aside", AT_REMOVEDIR), 0);
}

static void what_is_moved_takes_no_others_place(void **state)
{
	(void)state;
	moves_to_no_name_that_is_taken();
	moves_a_folder();
}

/* False: there are no filters of system calls here, as under an emulator. */
static bool lack_noreplace(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	bool ok = filter &&
		  seccomp_rule_add(filter, SCMP_ACT_ERRNO(EINVAL), SCMP_SYS(renameat2), 1,
				   SCMP_A4(SCMP_CMP_NE, 0)) == 0 &&
		  seccomp_load(filter) == 0;
	seccomp_release(filter);
	return ok;
}

/* Damage stayed where it was found, and each start found it again. */
static void nor_where_the_file_system_has_no_such_flag(void **state)
{
	(void)state;
	if (!lack_noreplace())
		skip();
	moves_to_no_name_that_is_taken();
	moves_a_folder();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_moved_takes_no_others_place),
		cmocka_unit_test(nor_where_the_file_system_has_no_such_flag),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
