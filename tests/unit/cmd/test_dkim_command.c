/* SPDX-License-Identifier: ISC */
/* A key whose record is printed is on stable storage, and so is its name: who has published the record has nothing to sign
 * with otherwise. The calls are written down, and then made; or they fail. */
#include "tests/unit/cmd/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char calls[100];
static int fails_at; /* the call that fails, from 1; 0: none */
static int made;

static int noted_sync(int fd)
{
	struct stat st;
	size_t len = strlen(calls);
	assert_int_equal(fstat(fd, &st), 0);
	snprintf(calls + len, sizeof calls - len, "%s; ", S_ISDIR(st.st_mode) ? "folder" : "file");
	errno = EIO;
	return ++made == fails_at ? -1 : fsync(fd);
}

#include "cmd/options.c"
#define fsync noted_sync
#include "base/file_io.c"
#include "cmd/local/dkim_command.c"
#undef fsync

bool check_access_give(const char *user, int fd)
{
	(void)user;
	(void)fd;
	return true;
}

bool dkim_look(struct conf *c, int n, char **domain, bool json)
{
	(void)c;
	(void)n;
	(void)domain;
	(void)json;
	return false;
}

static char folder[] = "/tmp/sluice-test-XXXXXX";
static char *path;

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/sluice-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	path = mem_printf("%s/s1.pem", folder);
	calls[0] = '\0';
	made = fails_at = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	assert_int_equal(rmdir(folder), 0);
	free(path);
	return 0;
}

static bool write_one(const char *file)
{
	EVP_PKEY *key = make_key("ed25519");
	bool done = write_key(key, file, "");
	EVP_PKEY_free(key);
	return done;
}

static void a_key_is_synced_and_then_its_name(void **state)
{
	(void)state;
	assert_true(write_one(path));
	assert_string_equal(calls, "file; folder; ");
	assert_int_equal(access(path, F_OK), 0);
}

static void a_key_in_the_folder_at_work_is_synced_likewise(void **state)
{
	(void)state;
	char *was = getcwd(NULL, 0);
	assert_int_equal(chdir(folder), 0);
	assert_true(write_one("s1.pem"));
	assert_int_equal(chdir(was), 0);
	free(was);
	assert_string_equal(calls, "file; folder; ");
}

static void a_key_that_is_not_stable_is_none(void **state)
{
	(void)state;
	for (fails_at = 1; fails_at <= 2; fails_at++) {
		made = 0;
		assert_false(write_one(path));
		assert_int_equal(access(path, F_OK), -1);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_key_is_synced_and_then_its_name),
		TEST(a_key_in_the_folder_at_work_is_synced_likewise),
		TEST(a_key_that_is_not_stable_is_none),
	};
	return RUN(tests);
}
