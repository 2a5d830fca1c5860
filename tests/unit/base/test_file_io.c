/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/file_io.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 200000 };

static int open_nameless(void)
{
	FILE *f = tmpfile();
	int fd = f ? dup(fileno(f)) : -1;
	assert_true(fd >= 0 && fclose(f) == 0);
	return fd;
}

static void what_is_written_is_read(void **state)
{
	static char bytes[SIZE];
	struct buf back = {0};
	int fd = open_nameless();
	(void)state;
	for (int i = 0; i < SIZE; i++)
		bytes[i] = (char)(i * 31);
	buf_puts(&back, "before ");
	assert_true(file_write(fd, bytes, SIZE));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_true(file_read(fd, SIZE, &back));
	assert_int_equal(buf_len(&back), SIZE + strlen("before "));
	assert_memory_equal(buf_data(&back) + strlen("before "), bytes, SIZE);
	buf_clear(&back);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	errno = 0;
	assert_false(file_read(fd, SIZE - 1, &back));
	assert_int_equal(errno, EFBIG);
	buf_fini(&back);
	close(fd);
}

static void what_can_not_be_written(void **state)
{
	int ends[2];
	struct buf none = {0};
	(void)state;
	assert_int_equal(pipe(ends), 0);
	close(ends[1]);
	assert_true(file_read(ends[0], 0, &none));
	assert_false(file_write(ends[0], "x", 1));
	assert_int_equal(errno, EBADF);
	assert_int_equal(buf_len(&none), 0);
	buf_fini(&none);
	close(ends[0]);
}

static void what_has_no_end_is_not_opened(void **state)
{
	(void)state;
	errno = 0;
	assert_null(file_open("/dev/zero"));
	assert_int_equal(errno, EINVAL);
	FILE *nothing = file_open("/dev/null");
	assert_non_null(nothing);
	assert_int_equal(fgetc(nothing), EOF);
	fclose(nothing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(what_can_not_be_written),
		cmocka_unit_test(what_has_no_end_is_not_opened),
	};
	return RUN(tests);
}
