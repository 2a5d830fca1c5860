/* SPDX-License-Identifier: ISC */
#include "cmd/local/users_file.h"

#include "base/file_io.h"
#include "base/mem.h"
#include "base/users.h"
#include "base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINES                                                                                \
	"# Who may log in, and how their passwords are known. Written by sluice passwd.\n"

enum { SIZE_MAX_BYTES = 1 << 30, MODE_NEW = 0600, MODE_KEPT = 0640 };

/* Where the file lies, and how it was. */
struct place {
	char *path, *name; /* without symbolic links; name is its end */
	int folder;	   /* locked */
	bool there;
	struct stat before;
};

static bool put_errno(struct buf *error, const char *path)
{
	buf_printf(error, "%s: %s", path, strerror(errno));
	return false;
}

static bool find_place(struct place *p, const char *file, struct buf *error)
{
	char *real = realpath(file, NULL);
	*p = (struct place){.path = real ? real : mem_strdup(file), .folder = -1};
	char *slash = strrchr(p->path, '/');
	char *folder =
		slash ? mem_strndup(p->path, (size_t)(slash - p->path) + 1) : mem_strdup("./");
	p->name = slash ? slash + 1 : p->path;
	p->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found = p->folder >= 0 && flock(p->folder, LOCK_EX) == 0;
	if (!found)
		put_errno(error, folder);
	free(folder);
	return found;
}

static bool read_old(struct place *p, struct buf *to, struct buf *error)
{
	int fd = openat(p->folder, p->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return true;
	bool read = fd >= 0 && fstat(fd, &p->before) == 0 && file_read(fd, SIZE_MAX_BYTES, to);
	if (!read)
		put_errno(error, p->path);
	else if (!S_ISREG(p->before.st_mode))
		buf_printf(error, "%s: is no regular file", p->path);
	file_close(fd);
	buf_consume(to, utf8_mark(buf_cstr(to)));
	p->there = read;
	return read && S_ISREG(p->before.st_mode);
}

static bool is_row_of(const char *line, const char *login)
{
	size_t len = strcspn(line, " \t\r\n");
	return len == strlen(login) && strncasecmp(line, login, len) == 0;
}

static bool goes_on(const char *line)
{
	return (*line == ' ' || *line == '\t') && line[strspn(line, " \t\r")] != '\n';
}

static void put_row(struct buf *to, const char *login, const char *value)
{
	if (value)
		buf_printf(to, "%s %s\n", login, value);
}

/* All lines but those of the login, which becomes one where it was. True: it was there. */
static bool edit_rows(const char *old, const char *login, const char *value, struct buf *to)
{
	bool found = false, dropping = false;
	for (const char *line = old; *line;) {
		size_t len = strcspn(line, "\n");
		if (!goes_on(line))
			dropping = is_row_of(line, login);
		if (dropping && !found)
			put_row(to, login, value);
		found = found || dropping;
		if (!dropping) {
			buf_append(to, line, len);
			buf_puts(to, "\n");
		}
		line += len + (line[len] == '\n');
	}
	return found;
}

/* Whoever is not there gets answers by this key. */
static void add_key(const char *old, struct buf *to)
{
	struct user_value v = {.has_key = false};
	for (const char *line = old; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (is_row_of(line, USERS_NOBODY))
			return;
	}
	if (!user_value_make_key(&v))
		abort();
	buf_puts(to, USERS_NOBODY " ");
	user_value_print(&v, to);
	buf_puts(to, "\n");
	user_value_fini(&v);
}

/* The relay could not read it: it was never meant so. */
static bool is_for_root_alone(const struct stat *st)
{
	return st->st_uid == 0 && (st->st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

static bool give_ownership(const struct place *p, int fd, const char *user)
{
	if (p->there && !is_for_root_alone(&p->before))
		return (p->before.st_uid == geteuid() && p->before.st_gid == getegid()) ||
		       fchown(fd, p->before.st_uid, p->before.st_gid) == 0;
	const struct passwd *pw = geteuid() == 0 && *user ? getpwnam(user) : NULL;
	return !pw || fchown(fd, pw->pw_uid, pw->pw_gid) == 0;
}

static bool write_new(const struct place *p, const struct buf *text, const char *user,
		      struct buf *error)
{
	char *name = mem_printf("%s.new", p->name);
	mode_t mode = p->there ? p->before.st_mode & MODE_KEPT : MODE_NEW;
	unlinkat(p->folder, name, 0);
	int fd = openat(p->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			MODE_NEW);
	bool done = fd >= 0 && file_write(fd, buf_data(text), buf_len(text)) && fsync(fd) == 0 &&
		    give_ownership(p, fd, user) && fchmod(fd, mode) == 0 &&
		    renameat(p->folder, name, p->folder, p->name) == 0 && fsync(p->folder) == 0;
	if (!done) {
		put_errno(error, p->path);
		unlinkat(p->folder, name, 0);
	}
	file_close(fd);
	free(name);
	return done;
}

static enum users_file_outcome change_file(struct place *p, const char *login, const char *value,
					   const char *user, struct buf *error)
{
	struct buf old = {0}, new = {0};
	enum users_file_outcome outcome = USERS_FILE_FAILED;
	if (read_old(p, &old, error)) {
		if (!p->there)
			buf_puts(&new, FIRST_LINES);
		bool found = edit_rows(buf_cstr(&old), login, value, &new);
		add_key(buf_cstr(&old), &new);
		if (!found)
			put_row(&new, login, value);
		if (!found && !value)
			outcome = USERS_FILE_NONE;
		else if (write_new(p, &new, user, error))
			outcome = found ? USERS_FILE_CHANGED : USERS_FILE_ADDED;
	}
	buf_wipe(&old);
	buf_wipe(&new);
	return outcome;
}

enum users_file_outcome users_file_set(const char *file, const char *login, const char *value,
				       const char *user, struct buf *error)
{
	struct place p;
	enum users_file_outcome outcome = USERS_FILE_FAILED;
	if (find_place(&p, file, error))
		outcome = change_file(&p, login, value, user, error);
	file_close(p.folder);
	free(p.path);
	return outcome;
}
