/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/mem.h"
#include "smtpc/token_store.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char spool[] = "/tmp/test_token_store.XXXXXX";
static const char file[] = "/etc/sluice/ann.oauth";
static struct token_source source = {.endpoint = (char *)"https://x.test/t",
				     .client_id = (char *)"me",
				     .refresh_token = (char *)"first"};

static bool keep(const char *newest, const char *before)
{
	struct buf why = {0};
	struct token_grant g = {(char *)newest, (char *)before};
	bool kept = token_store_write(spool, file, &source, &g, &why);
	buf_fini(&why);
	return kept;
}

/* "NEWEST BEFORE"; "": nothing; "!": something is wrong. */
static void assert_kept(const struct token_source *of, const char *expected)
{
	struct token_grant g;
	struct buf why = {0};
	char text[200] = "";
	bool any = token_store_read(spool, file, of, &g, &why);
	if (any)
		snprintf(text, sizeof text, "%s%s%s", g.newest, g.before ? " " : "",
			 g.before ? g.before : "");
	assert_string_equal(buf_len(&why) > 0 ? "!" : text, expected);
	token_grant_fini(&g);
	buf_fini(&why);
}

static void what_is_written_is_read(void **state)
{
	struct stat st;
	(void)state;
	assert_kept(&source, "");
	assert_true(keep("second", "first"));
	assert_kept(&source, "second first");
	assert_true(keep("second", NULL));
	assert_kept(&source, "second");
	char *path = token_store_path(spool, file);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	*strrchr(path, '/') = '\0';
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	free(path);
}

static void another_grant_in_the_file_wins(void **state)
{
	struct token_source other = source;
	(void)state;
	assert_true(keep("second", "first"));
	other.refresh_token = (char *)"given by hand";
	assert_kept(&other, "");
	other = source;
	other.client_id = (char *)"mf";
	assert_kept(&other, "");
	other = source;
	other.refresh_token = NULL;
	assert_kept(&other, "");
	/* What has nothing to do with the grant may change. */
	other = source;
	other.scope = (char *)"more";
	other.client_secret = (char *)"new";
	assert_kept(&other, "second first");
}

static void damage_is_said(void **state)
{
	char *path = token_store_path(spool, file);
	(void)state;
	assert_true(keep("second", "first"));
	FILE *f = fopen(path, "r+");
	fseek(f, 40, SEEK_SET);
	fputc('#', f);
	fclose(f);
	assert_kept(&source, "!");
	f = fopen(path, "w");
	fclose(f);
	assert_kept(&source, "!");
	assert_true(keep("third", NULL));
	assert_kept(&source, "third");
	free(path);
}

static void a_file_that_was_begun_is_in_nobody_s_way(void **state)
{
	char *path = token_store_path(spool, file), *fresh = mem_printf("%s.new", path);
	(void)state;
	assert_true(keep("second", NULL));
	FILE *f = fopen(fresh, "w");
	fputs("sluice token 1\nfile", f);
	fclose(f);
	assert_kept(&source, "second");
	assert_true(keep("third", "second"));
	assert_kept(&source, "third second");
	assert_int_equal(access(fresh, F_OK), -1);
	free(fresh);
	free(path);
}

static void what_can_not_be_written_leaves_what_was_there(void **state)
{
	char *path = token_store_path(spool, file), *fresh = mem_printf("%s.new", path);
	(void)state;
	assert_true(keep("second", NULL));
	assert_int_equal(mkdir(fresh, 0700), 0); /* nothing can be made there, by root neither */
	assert_false(keep("third", "second"));
	assert_kept(&source, "second");
	assert_int_equal(rmdir(fresh), 0);
	assert_true(keep("third", "second"));
	free(fresh);
	free(path);
}

static void names_are_plain_and_differ(void **state)
{
	static const char *const files[] = {
		"/a/x", "/b/x", "/b/.x", "/b/x y/../z\377", "/", "/etc/[host]:587 \xc3\xa4"};
	(void)state;
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		char *one = token_store_path("/s", files[i]);
		const char *name = strrchr(one, '/') + 1;
		assert_true(strncmp(one, "/s/tokens/", 10) == 0 && *name != '.');
		for (const char *c = name; *c; c++)
			assert_non_null(strchr("abcdefghijklmnopqrstuvwxyz0123456789-_.", *c));
		for (size_t j = 0; j < i; j++) {
			char *other = token_store_path("/s", files[j]);
			assert_string_not_equal(one, other);
			free(other);
		}
		free(one);
	}
	char longest[5000];
	memset(longest, 'n', sizeof longest);
	longest[0] = '/';
	longest[sizeof longest - 1] = '\0';
	char *one = token_store_path("/s", longest);
	assert_in_range(strlen(one), 20, 200);
	free(one);
}

/* Writers are killed at moments of chance: what is there is always one that was written, and never an older
 * one than a writer had been told is kept. */
static void a_kill_leaves_the_old_or_the_new(void **state)
{
	(void)state;
	assert_true(keep("0", NULL));
	for (int round = 0; round < 40; round++) {
		int told[2], last = 0, got;
		assert_int_equal(pipe(told), 0);
		pid_t writer = fork();
		if (writer == 0) {
			for (int i = 1;; i++) {
				char newest[16], before[16];
				snprintf(newest, sizeof newest, "%d", i);
				snprintf(before, sizeof before, "%d", i - 1);
				if (!keep(newest, before) ||
				    write(told[1], &i, sizeof i) != sizeof i)
					_exit(1);
			}
		}
		close(told[1]);
		for (int i = 0; i <= round % 5; i++)
			assert_int_equal(read(told[0], &last, sizeof last), sizeof last);
		usleep((useconds_t)(round * 37 % 400));
		assert_int_equal(kill(writer, SIGKILL), 0);
		while (read(told[0], &got, sizeof got) == sizeof got)
			last = got;
		close(told[0]);
		assert_int_equal(waitpid(writer, NULL, 0), writer);
		struct token_grant g;
		struct buf why = {0};
		assert_true(token_store_read(spool, file, &source, &g, &why));
		assert_in_range(atoi(g.newest), last, last + 1);
		assert_int_equal(atoi(g.before), atoi(g.newest) - 1);
		token_grant_fini(&g);
		buf_fini(&why);
	}
}

static void one_process_at_a_time_has_the_lock(void **state)
{
	char path[100];
	(void)state;
	snprintf(path, sizeof path, "%s/f", spool);
	assert_int_equal(token_store_lock(path, false), -1);
	assert_int_equal(errno, ENOENT);
	fclose(fopen(path, "w"));
	int one = token_store_lock(path, false);
	assert_true(one >= 0);
	assert_int_equal(token_store_lock(path, false), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	close(one);
	one = token_store_lock(path, true);
	assert_true(one >= 0);
	close(one);
	unlink(path);
}

static void a_stamp_changes_with_either_file(void **state)
{
	char path[100];
	(void)state;
	snprintf(path, sizeof path, "%s/f", spool);
	struct token_stamp none = token_store_stamp(spool, path);
	fclose(fopen(path, "w"));
	struct token_stamp one = token_store_stamp(spool, path), same = one;
	assert_false(token_stamp_same(&none, &one));
	assert_true(token_stamp_same(&one, &same));
	struct token_grant g = {(char *)"t", NULL};
	struct buf why = {0};
	assert_true(token_store_write(spool, path, &source, &g, &why));
	same = token_store_stamp(spool, path);
	assert_false(token_stamp_same(&one, &same));
	char *kept = token_store_path(spool, path);
	unlink(kept);
	unlink(path);
	free(kept);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(spool) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char *path = token_store_path(spool, file), *fresh = mem_printf("%s.new", path);
	(void)state;
	unlink(path);
	unlink(fresh); /* of the last one that was killed */
	free(fresh);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	free(path);
	return rmdir(spool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(another_grant_in_the_file_wins),
		cmocka_unit_test(damage_is_said),
		cmocka_unit_test(a_file_that_was_begun_is_in_nobody_s_way),
		cmocka_unit_test(what_can_not_be_written_leaves_what_was_there),
		cmocka_unit_test(names_are_plain_and_differ),
		cmocka_unit_test(a_kill_leaves_the_old_or_the_new),
		cmocka_unit_test(one_process_at_a_time_has_the_lock),
		cmocka_unit_test(a_stamp_changes_with_either_file),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
