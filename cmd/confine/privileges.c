/* SPDX-License-Identifier: ISC */
#include "cmd/confine/privileges.h"

#include "base/conf.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

bool privileges_of_default(const char *user)
{
	struct conf *defaults = conf_defaults();
	bool same = strcmp(user, defaults->user) == 0;
	conf_unref(defaults);
	return same;
}

/* getpwnam(3): several values of errno mean that, too. */
static const char *why_no_user(int error)
{
	bool absent =
		error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM;
	return absent ? "there is no such user" : strerror(error);
}

bool privileges_find(struct privileges *p, const char *user, struct buf *error)
{
	*p = (struct privileges){0};
	if (geteuid() != 0 || !*user || strcmp(user, "root") == 0)
		return true;
	errno = 0;
	const struct passwd *pw = getpwnam(user);
	if (!pw && privileges_of_default(user)) {
		log_event(LOG_LEVEL_WARNING, "running_as_root", "reason",
			  log_text("there is no user \"%s\"", user), NULL);
		return true;
	}
	if (!pw) {
		buf_printf(error,
			   "user = \"%s\": %s; make it, as with \"useradd --system %s\", "
			   "or set user = \"root\"",
			   user, why_no_user(errno), user);
		return false;
	}
	p->change = pw->pw_uid != 0;
	p->name = mem_strdup(user);
	p->uid = pw->pw_uid;
	p->gid = pw->pw_gid;
	return true;
}

static bool put_errno(struct buf *error, const char *what, const char *of)
{
	buf_printf(error, "%s %s: %s", what, of, strerror(errno));
	return false;
}

void privileges_own_file(const struct privileges *p, const char *path)
{
	if (!p->change)
		return;
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	/* If it can't be given away it can still be written through the descriptor there is. */
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid != p->uid &&
	    fchown(fd, p->uid, p->gid) != 0)
		errno = 0;
	if (fd >= 0)
		close(fd);
}

/* Can only root make and rename files in it? shared: others may make some of their own, as in /tmp. */
static bool is_roots(const char *folder, bool shared)
{
	struct stat st;
	return lstat(folder, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == 0 &&
	       (!(st.st_mode & (S_IWGRP | S_IWOTH)) || (shared && (st.st_mode & S_ISVTX)));
}

/* And who could rename a folder above it? */
static bool all_roots(char *folder, bool shared)
{
	bool roots = is_roots(folder, shared);
	for (char *slash; roots && (slash = strrchr(folder, '/')) && slash > folder;) {
		*slash = '\0';
		roots = is_roots(folder, true);
	}
	return roots && is_roots("/", true);
}

/* Is what lies there, or will, named by root alone? */
static bool named_by_root(const char *path, bool shared)
{
	const char *slash = strrchr(path, '/');
	char *named = mem_printf("%.*s", slash > path ? (int)(slash - path) : 1, path);
	char *folder = realpath(named, NULL);
	bool roots = folder && all_roots(folder, shared);
	free(folder);
	free(named);
	return roots;
}

bool privileges_may_touch(const struct privileges *p, const char *path)
{
	struct stat st;
	if (!p->change)
		return true;
	bool link = lstat(path, &st) == 0 && S_ISLNK(st.st_mode);
	return !link && named_by_root(path, false);
}

/* In a folder as /tmp nobody else can move or replace what is root's. */
static bool may_give_folder(const struct privileges *p, const char *path)
{
	return privileges_may_touch(p, path) || (is_roots(path, true) && named_by_root(path, true));
}

/* Root may have no right to open it then. */
static bool is_user_s(const struct privileges *p, const char *path)
{
	struct stat st;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == p->uid &&
	       st.st_gid == p->gid;
}

static bool own_folder(const struct privileges *p, const char *path, struct buf *error)
{
	if (is_user_s(p, path))
		return true;
	if (mkdir(path, 0750) != 0 && errno != EEXIST)
		return put_errno(error, "cannot make", path);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return put_errno(error, "cannot open", path);
	bool ok = fchown(fd, p->uid, p->gid) == 0 || put_errno(error, "cannot give away", path);
	close(fd);
	return ok;
}

/* With a slash at its end a symbolic link would be what it leads to. */
static char *without_slashes(const char *path)
{
	size_t len = strlen(path);
	while (len > 1 && path[len - 1] == '/')
		len--;
	return mem_strndup(path, len);
}

bool privileges_gives_folder(const struct privileges *p, const char *path)
{
	char *name = without_slashes(path);
	bool gives = p->change && may_give_folder(p, name);
	free(name);
	return gives;
}

bool privileges_own_folder(const struct privileges *p, const char *path, struct buf *error)
{
	char *name = without_slashes(path);
	bool ok = !p->change || !may_give_folder(p, name) || own_folder(p, name, error);
	free(name);
	return ok;
}

bool privileges_lend(const struct privileges *p, struct buf *error)
{
	if (!p->change)
		return true;
	if (setgroups(0, NULL) != 0 || setegid(p->gid) != 0 || seteuid(p->uid) != 0)
		return put_errno(error, "cannot become user", p->name);
	return true;
}

bool privileges_return(const struct privileges *p, struct buf *error)
{
	if (!p->change)
		return true;
	if (seteuid(0) != 0 || setegid(0) != 0)
		return put_errno(error, "cannot become", "root again");
	return true;
}

bool privileges_drop(struct privileges *p, struct buf *error)
{
	if (!p->change)
		return true;
	if (initgroups(p->name, p->gid) != 0 || setresgid(p->gid, p->gid, p->gid) != 0 ||
	    setresuid(p->uid, p->uid, p->uid) != 0 || setuid(0) == 0)
		return put_errno(error, "cannot become user", p->name);
	return true;
}

void privileges_fini(struct privileges *p)
{
	mem_free(&p->name);
}

bool privileges_become(const char *user, struct buf *error)
{
	struct privileges p;
	bool ok = privileges_find(&p, user, error) && privileges_drop(&p, error);
	privileges_fini(&p);
	return ok;
}

void privileges_raise_limits(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}
