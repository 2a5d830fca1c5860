/* SPDX-License-Identifier: ISC */
/* What the relay has learnt, and whom the operator has suspended, survives a restart as it was written; and what can't be read
 * is not written over. */
#include "tests/unit/cmd/unit.h"

#include "base/log.h"

#include <stdlib.h>
#include <sys/stat.h>

static char said[400];

static void keep_event(enum log_level level, const char *name, ...);

#define log_event keep_event
#include "cmd/watch/kept_file.c"
#undef log_event

static char folder[] = "/tmp/sluice-test-XXXXXX";
static const char words[] = "one 1\ntwo 2\n";

/* The last, by its reason. */
static void keep_event(enum log_level level, const char *name, ...)
{
	va_list all;
	va_start(all, name);
	for (const char *key = va_arg(all, const char *); key; key = va_arg(all, const char *)) {
		const char *value = va_arg(all, const char *);
		if (strcmp(key, "reason") == 0)
			snprintf(said, sizeof said, "%d %s: %s", level == LOG_LEVEL_ERROR, name,
				 value);
	}
	va_end(all);
}

static const char *path(const char *name)
{
	static char at[2][100];
	static int turn;
	char *to = at[turn++ % 2];
	snprintf(to, sizeof at[0], "%s/%s", folder, name);
	return to;
}

static int begin(void **state)
{
	(void)state;
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	said[0] = '\0';
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	static const char *const names[] = {"suspended", "suspended.bad", "suspended.new"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (unlink(path(names[i])) < 0)
			rmdir(path(names[i]));
	return rmdir(folder);
}

static void assert_reads(const char *expected)
{
	struct buf text = {0};
	kept_file_read(&kept_suspended, folder, &text);
	assert_string_equal(buf_cstr(&text), expected);
	buf_fini(&text);
}

static void what_was_written_is_read(void **state)
{
	(void)state;
	kept_file_write(&kept_suspended, folder, words);
	assert_reads(words);
	kept_file_write(&kept_suspended, folder, "");
	assert_reads("");
	assert_string_equal(said, "");
}

static void none_is_like_an_empty_one(void **state)
{
	(void)state;
	assert_reads("");
	assert_string_equal(said, "");
	kept_file_read(&kept_suspended, "/tmp/sluice-test-none", &(struct buf){0});
	assert_string_equal(said, "");
}

/* Whatever byte is another one, and wherever the file ends. */
static void a_damaged_one_is_put_aside(void **state)
{
	(void)state;
	struct stat st, aside;
	kept_file_write(&kept_suspended, folder, words);
	assert_int_equal(stat(path("suspended"), &st), 0);
	for (off_t at = 0; at < st.st_size; at++) {
		kept_file_write(&kept_suspended, folder, words);
		int fd = open(path("suspended"), O_RDWR);
		char byte;
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte = (char)(byte ^ 1);
		if (at % 2 == 0)
			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		else
			assert_int_equal(ftruncate(fd, at), 0);
		close(fd);
		said[0] = '\0';
		assert_reads("");
		assert_string_equal(
			said,
			"1 suspended: it is damaged, and now suspended.bad; no login is suspended");
		assert_int_equal(stat(path("suspended"), &st), -1);
		assert_int_equal(stat(path("suspended.bad"), &aside), 0);
	}
}

static void one_that_can_not_be_opened_is_put_aside(void **state)
{
	(void)state;
	struct stat st;
	assert_int_equal(symlink("elsewhere", path("suspended")), 0);
	assert_reads("");
	assert_non_null(
		strstr(said, "it can't be read (Too many levels of symbolic links), and now "));
	assert_int_equal(lstat(path("suspended.bad"), &st), 0);
	kept_file_write(&kept_suspended, folder, words);
	assert_reads(words);
	assert_int_equal(lstat(path("suspended.bad"), &st), 0);
}

static void one_whose_bytes_can_not_be_read_is_put_aside(void **state)
{
	(void)state;
	struct stat st;
	assert_int_equal(mkdir(path("suspended"), 0700), 0);
	assert_reads("");
	assert_non_null(strstr(said, "it can't be read (Is a directory), and now suspended.bad; "));
	assert_int_equal(stat(path("suspended.bad"), &st), 0);
}

static void who_looks_moves_nothing(void **state)
{
	(void)state;
	struct stat st;
	struct buf text = {0};
	kept_file_write(&kept_suspended, folder, words);
	kept_file_look(&kept_suspended, folder, &text);
	assert_string_equal(buf_cstr(&text), words);
	buf_clear(&text);
	assert_int_equal(truncate(path("suspended"), 20), 0);
	kept_file_look(&kept_suspended, folder, &text);
	assert_string_equal(buf_cstr(&text), "");
	assert_string_equal(said, "");
	assert_int_equal(stat(path("suspended"), &st), 0);
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_written_is_read, begin, end),
		cmocka_unit_test_setup_teardown(none_is_like_an_empty_one, begin, end),
		cmocka_unit_test_setup_teardown(a_damaged_one_is_put_aside, begin, end),
		cmocka_unit_test_setup_teardown(one_that_can_not_be_opened_is_put_aside, begin,
						end),
		cmocka_unit_test_setup_teardown(one_whose_bytes_can_not_be_read_is_put_aside, begin,
						end),
		cmocka_unit_test_setup_teardown(who_looks_moves_nothing, begin, end),
	};
	return RUN(tests);
}
