/* SPDX-License-Identifier: ISC */
/* What the folder of a queue that is being adopted says of itself, whatever a crash has left of it. */
#include "tests/unit/base/unit.h"

#include "replica/harvest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "adopted-from-n2"

static char spool[] = "/var/tmp/harvest.XXXXXX";

static void write_origin(const char *text)
{
	char path[100];
	snprintf(path, sizeof path, "%s/" FOLDER "/origin", spool);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static int setup(void **state)
{
	(void)state;
	char path[100];
	assert_non_null(mkdtemp(spool));
	snprintf(path, sizeof path, "%s/" FOLDER, spool);
	return mkdir(path, 0700);
}

static int teardown(void **state)
{
	(void)state;
	char path[100];
	snprintf(path, sizeof path, "%s/" FOLDER "/origin", spool);
	unlink(path);
	snprintf(path, sizeof path, "%s/" FOLDER, spool);
	rmdir(path);
	return rmdir(spool);
}

static void is_not_there(void)
{
	struct harvest_origin of;
	errno = 0;
	assert_false(harvest_origin(&of, spool, FOLDER));
	assert_int_equal(errno, ENOENT);
}

/* Else it would be one that can't be read just now, and be left alone, for ever. */
static void an_origin_that_ends_too_soon_is_not_there(void **state)
{
	(void)state;
	is_not_there();
	write_origin("");
	is_not_there();
	write_origin("life=00000000000000a1 epoch=");
	is_not_there();
}

static void one_that_is_whole_says_of_which_queue_it_was_made(void **state)
{
	(void)state;
	struct harvest_origin of;
	write_origin("life=00000000000000a1 epoch=3 end=70\n");
	assert_true(harvest_origin(&of, spool, FOLDER));
	assert_int_equal(of.life, 0xa1);
	assert_int_equal(of.epoch, 3);
	assert_int_equal(of.end, 70);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_origin_that_ends_too_soon_is_not_there),
		cmocka_unit_test(one_that_is_whole_says_of_which_queue_it_was_made),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
