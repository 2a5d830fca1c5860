/* SPDX-License-Identifier: ISC */
#include "cmd/logs/log_files.h"

#include "base/log_line.h"
#include "base/log_stamp.h"
#include "base/mem.h"
#include "cmd/logs/log_source.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LINES_LOOKED_AT = 1000 }; /* for the first that has a time */

static size_t count_digits(const char *s)
{
	return strspn(s, "0123456789");
}

/* ".2", "-20261122", "-20261122-10", "-2026-11-22": what rotation puts into a name. Returns what follows
 * it, or NULL. */
static const char *skip_rotation(const char *s)
{
	if (s[0] == '.' && count_digits(s + 1) > 0)
		return s + 1 + count_digits(s + 1);
	size_t len = s[0] == '-' ? strspn(s, "-0123456789") : 0;
	return len > 4 ? s + len : NULL;
}

static bool is_packed(const char *s)
{
	static const char *const ends[] = {"", ".gz", ".zst", ".xz", ".bz2"};
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		if (strcmp(s, ends[i]) == 0)
			return true;
	return false;
}

/* NAME.1.gz; or, of a NAME with an extension, sluice.1.log.gz. */
static bool is_rotated(const char *name, const char *of)
{
	const char *extension = strrchr(of, '.'), *rest;
	size_t whole = strlen(of), stem = extension ? (size_t)(extension - of) : whole;
	if (strncmp(name, of, whole) == 0 && (rest = skip_rotation(name + whole)) != NULL &&
	    is_packed(rest))
		return true;
	if (!extension || strncmp(name, of, stem) != 0)
		return false;
	size_t len = strlen(extension);
	rest = skip_rotation(name + stem);
	return rest && strncmp(rest, extension, len) == 0 && is_packed(rest + len);
}

/* Of a line of ours, or of another program's: a file of syslogd's has those of all. */
static bool time_of(const char *line, size_t len, int64_t written_ms, int64_t *ms)
{
	struct log_line l;
	bool ours = log_line_read(&l, line, len, written_ms);
	if (ours)
		*ms = l.wall_ms;
	return ours || log_stamp_read(line, len, written_ms, ms) > 0;
}

static bool find_first_time(struct log_file *f, struct buf *error)
{
	const char *line;
	size_t len;
	struct buf unread = {0}; /* a file that is damaged further on is told of when it is read */
	struct log_source *s = log_source_open(f->path, error);
	f->first_ms = LOG_FILE_NO_TIME;
	if (!s)
		return false;
	for (int i = 0; i < LINES_LOOKED_AT && log_source_line(s, &line, &len); i++)
		if (time_of(line, len, f->written_ms, &f->first_ms))
			break;
	log_source_close(&s, &unread);
	buf_fini(&unread);
	return true;
}

/* Lines that are read from a pipe are gone for the one who is to have them, and it has no end. */
static const char *why_unread(const char *path, struct stat *st)
{
	if (stat(path, st) != 0)
		return strerror(errno);
	return S_ISFIFO(st->st_mode) ? "it is a pipe, whose lines are another's" : NULL;
}

static void add_file(struct log_files *f, char *path, struct buf *error)
{
	struct stat st;
	struct log_file one = {.path = path};
	const char *why = why_unread(path, &st);
	if (why) {
		buf_printf(error, "can't read %s: %s\n", path, why);
		free(path);
		return;
	}
	one.written_ms = (int64_t)st.st_mtim.tv_sec * 1000;
	if (!find_first_time(&one, error)) {
		buf_puts(error, "\n");
		free(path);
		return;
	}
	f->of = mem_realloc(f->of, ((size_t)f->n + 1) * sizeof *f->of);
	f->of[f->n++] = one;
}

static int by_time(const void *a, const void *b)
{
	const struct log_file *x = a, *y = b;
	if (x->first_ms != y->first_ms)
		return x->first_ms < y->first_ms ? -1 : 1;
	return x->written_ms < y->written_ms ? -1 : x->written_ms > y->written_ms;
}

void log_files_find(struct log_files *f, const char *path, struct buf *error)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char *folder = slash ? mem_strndup(path, (size_t)(name - path)) : mem_strdup("./");
	DIR *d = opendir(folder);
	add_file(f, mem_strdup(path), error);
	for (struct dirent *e; d && (e = readdir(d)) != NULL;)
		if (is_rotated(e->d_name, name))
			add_file(f, mem_printf("%s%s", folder, e->d_name), error);
	if (d)
		closedir(d);
	free(folder);
	if (f->n > 0)
		qsort(f->of, (size_t)f->n, sizeof *f->of, by_time);
}

void log_files_fini(struct log_files *f)
{
	for (int i = 0; i < f->n; i++)
		free(f->of[i].path);
	free(f->of);
	*f = (struct log_files){0};
}
