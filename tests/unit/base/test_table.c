/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/mem.h"
#include "base/table.h"

#include <cdb.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[64];
static struct buf errors;

/* Every value is good but one with "bad" in it. */
static const char *check(const void *context, const char *key, const char *value, struct buf *why)
{
	(void)context;
	const char *at = strstr(value, "bad");
	if (at)
		buf_printf(why, "%s has a bad value", key);
	return at;
}

static const struct table_form blank = {.shape = "key value", .check = check};
static const struct table_form bare = {.bare = true, .shape = "key", .check = check};
static const struct table_form colon = {.colon = true, .shape = "key: value", .check = check};

static void write_file(const char *text)
{
	FILE *f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
}

static struct table *read_table(const struct table_form *form)
{
	struct conf_faults faults = {0};
	struct table *t = table_read(path, form, NULL, &faults);
	buf_clear(&errors);
	conf_faults_say(&faults, &errors);
	assert_true((t == NULL) == (faults.n > 0));
	conf_faults_fini(&faults);
	return t;
}

static struct table *text(const struct table_form *form, const char *content)
{
	snprintf(path, sizeof path, "/tmp/test_table.%d", (int)getpid());
	write_file(content);
	return read_table(form);
}

static void has(const struct table *t, const char *key, const char *value, int line)
{
	struct table_origin origin;
	char *got = table_get(t, key, &origin);
	assert_non_null(got);
	assert_string_equal(got, value);
	assert_int_equal(origin.line, line);
	assert_string_equal(origin.file, path);
	free(got);
}

static void has_not(const struct table *t, const char *key)
{
	struct table_origin origin;
	assert_null(table_get(t, key, &origin));
}

static void done(struct table *t)
{
	table_unref(t);
	unlink(path);
}

static void a_text_is_keys_and_values_a_line_each(void **state)
{
	(void)state;
	struct table *t = text(&blank, "# none\n\nB.test\tone two  \r\n@a.test  x\n"
				       "\"odd one\"@c.test y\n*\tz");
	has(t, "b.test", "one two", 3);
	has(t, "a.test", "x", 4);
	has(t, "\"odd one\"@c.test", "y", 5);
	has(t, "*", "z", 6);
	has_not(t, "c.test");
	has_not(t, "");
	done(t);
}

static void a_value_may_begin_in_the_next_line(void **state)
{
	(void)state;
	const char *rows =
		"a.test\n# none\n  one\n\ttwo\nb.test \r\n one\n\"odd one\"@c.test.\n\n one";
	const struct table_form *const forms[] = {&blank, &bare};
	for (size_t i = 0; i < 2; i++) {
		struct table *t = text(forms[i], rows);
		has(t, "a.test", "one  two", 1);
		has(t, "b.test", "one", 5);
		has(t, "\"odd one\"@c.test", "one", 7);
		done(t);
	}
}

static void a_list_of_keys_needs_no_values(void **state)
{
	(void)state;
	struct table *t = text(
		&bare,
		"# none\na@x.test\nB@x.test  \r\n@y.test OK\n\nc@x.test on\n and on\nlast@x.test");
	has(t, "a@x.test", "", 2);
	has(t, "b@x.test", "", 3);
	has(t, "y.test", "OK", 4);
	has(t, "c@x.test", "on  and on", 6);
	has(t, "last@x.test", "", 8);
	done(t);
	assert_null(text(&blank, "a@x.test\n"));
	assert_non_null(strstr(buf_cstr(&errors), ":1: must be \"key value\""));
	unlink(path);
}

static void a_line_that_begins_with_a_blank_goes_on(void **state)
{
	(void)state;
	struct table *t = text(&colon, "a: x,\n# between\n\n  y,\n\tz\nb:\n  w\n");
	char spelt[64], *to = spelt;
	struct table_origin origin;
	char *value = table_get(t, "a", &origin);
	for (const char *from = value; *from; from++)
		if (*from != ' ' && *from != '\t')
			*to++ = *from;
	*to = '\0';
	assert_string_equal(spelt, "x,y,z");
	free(value);
	value = table_get(t, "b", &origin);
	assert_non_null(strchr(value, 'w'));
	free(value);
	done(t);
}

/* A byte order mark, which editors of Windows write, belongs to no key. */
static void a_mark_before_the_first_line_is_no_part_of_it(void **state)
{
	(void)state;
	struct table *t = text(&blank, "\xef\xbb\xbf"
				       "a@b.test one\r\nb@b.test two\r\n");
	has(t, "a@b.test", "one", 1);
	has(t, "b@b.test", "two", 2);
	done(t);
	t = text(&colon, "\xef\xbb\xbf# none\na@b.test: one\n");
	has(t, "a@b.test", "one", 2);
	done(t);
	done(text(&bare, "\xef\xbb\xbf"));
}

static void wrong(const struct table_form *form, const char *content, int line, const char *phrase)
{
	assert_null(text(form, content));
	char *where = mem_printf("%s:%d: ", path, line);
	if (!strstr(buf_cstr(&errors), where) || !strstr(buf_cstr(&errors), phrase))
		fail_msg("expected %s...%s...\nsaid %s", where, phrase, buf_cstr(&errors));
	free(where);
	unlink(path);
}

static void a_fault_is_where_the_value_is(void **state)
{
	(void)state;
	wrong(&blank, "a.test\n one\nb.test\n# none\n one\n bad\n", 6, "bad");
	wrong(&blank, "a.test\nb.test one\n", 1, "must be \"key value\"");
	wrong(&blank, "a.test \n\n", 1, "must be \"key value\"");
}

static void each_fault_has_its_line(void **state)
{
	(void)state;
	wrong(&blank, "a x\n\nb bad\n", 3, "b has a bad value");
	wrong(&colon, "a: x,\n y,\n bad\n", 3, "a has a bad value");
	wrong(&blank, "a x\nb\nc y\n", 2, "must be \"key value\"");
	wrong(&colon, "a x\n", 1, "must be \"key: value\"");
	wrong(&blank, "  x\n", 1, "never begun");
	wrong(&blank, "a x\nc y\n@A z\n", 3, "\"a\" is already there, at");
	snprintf(path, sizeof path, "/nowhere/table");
	assert_null(read_table(&blank));
	assert_non_null(strstr(buf_cstr(&errors), "/nowhere/table:1: can't be read"));
}

struct record {
	const char *key, *value;
	unsigned nul; /* behind each */
};

static void write_cdb(const struct record *r, int n)
{
	struct cdb_make make;
	snprintf(path, sizeof path, "/tmp/test_table.%d.cdb", (int)getpid());
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	cdb_make_start(&make, fd);
	for (int i = 0; i < n; i++)
		cdb_make_add(&make, r[i].key, (unsigned)strlen(r[i].key) + r[i].nul, r[i].value,
			     (unsigned)strlen(r[i].value) + r[i].nul);
	cdb_make_finish(&make);
	close(fd);
}

static void a_cdb_file_has_its_keys_with_nul_or_without(void **state)
{
	(void)state;
	static const struct record r[] = {
		{"a.test", "x", 0}, {"@b.test", "y", 1}, {"u@c.test", "z", 1}, {"*", "w", 0}};
	write_cdb(r, 4);
	struct table *t = read_table(&blank);
	assert_non_null(t);
	has(t, "a.test", "x", 0);
	has(t, "b.test", "y", 0);
	has(t, "u@c.test", "z", 0);
	has(t, "*", "w", 0);
	has_not(t, "test");
	assert_int_equal(truncate(path, 0), 0);
	has(t, "a.test", "x", 0);
	done(t);
}

static void a_cdb_file_with_a_fault_says_which_record(void **state)
{
	(void)state;
	static const struct record r[] = {{"a", "x", 0}, {"B", "y", 0}, {"c", "bad", 1}};
	write_cdb(r, 3);
	assert_null(read_table(&blank));
	assert_non_null(strstr(buf_cstr(&errors), ":2: the key \"B\" must be in lower case"));
	assert_non_null(strstr(buf_cstr(&errors), ":3: c has a bad value"));
	unlink(path);
}

static void a_cdb_file_that_never_ends_is_not_read(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/test_table.%d.cdb", (int)getpid());
	assert_int_equal(symlink("/dev/zero", path), 0);
	assert_null(read_table(&blank));
	assert_non_null(strstr(buf_cstr(&errors), "can't be read"));
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_null(read_table(&blank));
	assert_non_null(strstr(buf_cstr(&errors), "can't be read"));
	unlink(path);
}

/* Whatever is missing or wrong in it: found, or harmless. */
static void a_damaged_cdb_file_does_no_harm(void **state)
{
	(void)state;
	static const struct record r[] = {{"a.test", "x", 0}, {"b.test", "y", 1}};
	struct stat st;
	write_cdb(r, 2);
	assert_int_equal(stat(path, &st), 0);
	for (off_t len = st.st_size - 1; len >= 0; len -= len > 7 ? 7 : 1) {
		write_cdb(r, 2);
		assert_int_equal(truncate(path, len), 0);
		assert_null(read_table(&blank));
	}
	for (off_t at = 0; at < st.st_size; at += 3) {
		write_cdb(r, 2);
		int fd = open(path, O_RDWR);
		assert_int_equal(pwrite(fd, "\xff\xff", 2, at), 2);
		close(fd);
		struct table *t = read_table(&blank);
		struct table_origin origin;
		if (t)
			free(table_get(t, "a.test", &origin));
		table_unref(t);
	}
	unlink(path);
}

static void a_table_is_stale_when_its_file_has_changed_and_rests(void **state)
{
	(void)state;
	struct timespec old[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
	struct table *t = text(&blank, "a x\n");
	assert_int_equal(table_fresh(t), TABLE_WRITTEN); /* in the moment when it was read */
	utimensat(AT_FDCWD, path, old, 0);
	assert_int_equal(table_fresh(t), TABLE_STALE);
	table_unref(t);
	t = read_table(&blank);
	assert_int_equal(table_fresh(t), TABLE_FRESH);
	write_file("a y\n");
	assert_int_equal(table_fresh(t), TABLE_WRITTEN);
	utimensat(AT_FDCWD, path, old, 0);
	unlink(path);
	assert_int_equal(table_fresh(t), TABLE_STALE);
	table_faulty(t);
	assert_int_equal(table_fresh(t), TABLE_FRESH);
	has(t, "a", "x", 1);
	table_unref(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_keys_and_values_a_line_each),
		cmocka_unit_test(a_value_may_begin_in_the_next_line),
		cmocka_unit_test(a_fault_is_where_the_value_is),
		cmocka_unit_test(a_list_of_keys_needs_no_values),
		cmocka_unit_test(a_line_that_begins_with_a_blank_goes_on),
		cmocka_unit_test(a_mark_before_the_first_line_is_no_part_of_it),
		cmocka_unit_test(each_fault_has_its_line),
		cmocka_unit_test(a_cdb_file_has_its_keys_with_nul_or_without),
		cmocka_unit_test(a_cdb_file_with_a_fault_says_which_record),
		cmocka_unit_test(a_cdb_file_that_never_ends_is_not_read),
		cmocka_unit_test(a_damaged_cdb_file_does_no_harm),
		cmocka_unit_test(a_table_is_stale_when_its_file_has_changed_and_rests),
	};
	int failed = RUN(tests);
	buf_fini(&errors);
	return failed;
}
