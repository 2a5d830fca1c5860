/* SPDX-License-Identifier: ISC */
/* What is left in the maildrop, and what is taken from there, is on stable storage before anybody relies on it: the calls
 * are written down in their order, and only then made. */
#include "tests/unit/cmd/unit.h"

#include "base/list.h"
#include "base/mem.h"
#include "spool/disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char calls[400];

/* A file, or the folder that it is. */
static void note_call(const char *call, int fd)
{
	char path[64], real[300];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(path, real, sizeof real - 1);
	assert_true(n > 0);
	real[n] = '\0';
	const char *name = strrchr(real, '/') + 1;
	struct stat st;
	bool folder = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
	size_t len = strlen(calls);
	snprintf(calls + len, sizeof calls - len, "%s %s; ", call, folder ? name : "file");
}

static int noted_sync(int fd)
{
	note_call("sync", fd);
	return disk_sync(fd);
}

static int noted_renameat(int from, const char *name, int to, const char *to_name)
{
	note_call("rename into", to);
	return renameat(from, name, to, to_name);
}

#define disk_sync noted_sync
#define renameat noted_renameat
#include "cmd/maildrop/maildrop_folder.c"
#define open_folder leave_open_folder
#include "cmd/maildrop/maildrop_leave.c"
#undef disk_sync
#undef renameat
#include "cmd/maildrop/maildrop_access.c"
#include "cmd/maildrop/maildrop_form.c"

static char folder[] = "/tmp/sluice-test-XXXXXX";
static struct conf *conf;

const struct conf_listener *submit_listener(const struct conf *c)
{
	static char all[] = "127.0.0.0/8", *networks[] = {all};
	static const struct conf_listener none = {.recipient_limit = 10, .networks = {1, networks}};
	(void)c;
	return &none;
}

struct take *take_new(uint64_t id)
{
	struct take *t = mem_zalloc(sizeof *t);
	t->id = id;
	return t;
}

void take_free(struct take **tp)
{
	free(*tp);
	*tp = NULL;
}

const char *take_owner(const struct take *t, char name[64])
{
	(void)t;
	return name;
}

static int set_up(void **state)
{
	(void)state;
	static const char *const names[] = {"maildrop", "taken", "quarantine"};
	strcpy(folder, "/tmp/sluice-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
	conf = conf_defaults();
	free(conf->spool);
	conf->spool = mem_strdup(folder);
	conf->queue_minfree = 0;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		char *path = mem_printf("%s/%s", folder, names[i]);
		assert_int_equal(mkdir(path, 0755), 0);
		free(path);
	}
	calls[0] = '\0';
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	char *line = mem_printf("rm -r '%s'", folder);
	assert_int_equal(system(line), 0);
	free(line);
	conf_unref(conf);
	return 0;
}

static void leave_one(void)
{
	char to_text[] = "a@dest.test";
	char *item[] = {to_text};
	const struct address_list to = {1, item};
	struct buf content = {0}, error = {0};
	buf_puts(&content, "Subject: x\r\n\r\nhello\r\n");
	const struct submission s = {.sender = "me@sender.test", .to = &to, .content = &content};
	if (maildrop_leave(conf, &s, &error) != 0)
		fail_msg("%s", buf_cstr(&error));
	buf_fini(&content);
	buf_fini(&error);
}

static void a_message_is_synced_named_and_its_name_is_synced(void **state)
{
	(void)state;
	leave_one();
	assert_string_equal(calls, "sync file; rename into maildrop; sync maildrop; ");
}

/* Before it is stored: else a crash could leave it in both folders, and it would be stored twice. */
static void what_is_claimed_is_in_one_folder_for_good(void **state)
{
	(void)state;
	struct maildrop_folder f = {0};
	struct buf error = {0};
	struct list takes;
	list_init(&takes);
	leave_one();
	calls[0] = '\0';
	assert_true(maildrop_folder_open(&f, folder, &error));
	maildrop_folder_claim(&f, &takes);
	assert_true(maildrop_folder_sync(&f));
	assert_string_equal(calls, "rename into taken; sync taken; sync maildrop; ");
	struct take *t = list_entry(list_first(&takes), struct take, link);
	list_remove(&t->link);
	take_free(&t);
	assert_true(list_empty(&takes));
	maildrop_folder_close(&f);
	buf_fini(&error);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_message_is_synced_named_and_its_name_is_synced),
		TEST(what_is_claimed_is_in_one_folder_for_good),
	};
	return RUN(tests);
}
