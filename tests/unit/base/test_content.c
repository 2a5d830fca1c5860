/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/content.h"
#include "base/mem.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void bytes_in_memory_are_read_and_counted(void **state)
{
	(void)state;
	char to[16];
	int64_t before = content_memory_bytes();
	struct content *c = content_in_memory(mem_strdup("0123456789"), 10);
	assert_int_equal(content_memory_bytes() - before, 10);
	assert_int_equal(content_read(c, 4, to, 3), 3);
	assert_memory_equal(to, "456", 3);
	assert_int_equal(content_read(c, 8, to, sizeof to), 2);
	assert_int_equal(content_read(c, 10, to, sizeof to), 0);
	assert_int_equal(content_read(c, UINT64_MAX, to, sizeof to), 0);
	content_unref(content_ref(c));
	content_unref(c);
	assert_int_equal(content_memory_bytes(), before);
}

static int temporary(const char *text)
{
	char name[] = "/tmp/test_content.XXXXXX";
	int fd = mkstemp(name);
	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	return fd;
}

static void a_region_of_a_file_ends_where_it_ends(void **state)
{
	(void)state;
	char to[16];
	int fd = temporary("headCONTENTtail");
	struct content_file *f = content_file_new(fd);
	struct content *c = content_in_file(f, 4, 7);
	content_file_unref(f);
	assert_int_equal(content_read(c, 0, to, sizeof to), 7);
	assert_memory_equal(to, "CONTENT", 7);
	assert_int_equal(content_read(c, 5, to, 1), 1);
	assert_int_equal(to[0], 'N');
	content_unref(c);
	assert_int_equal(fcntl(fd, F_GETFD), -1); /* closed with its last reader */
}

static void a_file_shorter_than_the_content_is_an_error(void **state)
{
	(void)state;
	char to[64];
	struct content_file *f = content_file_new(temporary("short"));
	struct content *c = content_in_file(f, 0, 50);
	assert_int_equal(content_read(c, 0, to, sizeof to), -1);
	content_unref(c);
	content_file_unref(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_in_memory_are_read_and_counted),
		cmocka_unit_test(a_region_of_a_file_ends_where_it_ends),
		cmocka_unit_test(a_file_shorter_than_the_content_is_an_error),
	};
	return RUN(tests);
}
