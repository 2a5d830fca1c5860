/* SPDX-License-Identifier: ISC */
#include "cmd/maildrop/maildrop_folder.h"

#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "spool/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MODE_AS_MADE = 0700, MODE = 03733, MODE_TO_PASS = 0011, MODE_BITS = 01777 };

struct names {
	struct maildrop_folder *folder;
	char *name[MAILDROP_NAMES_MAX];
	int n;
};

static bool put_errno(const char *spool, const char *name, struct buf *error)
{
	buf_printf(error, "%s/%s: %s", spool, name, strerror(errno));
	return false;
}

static bool open_part(int spool, const char *name, int *fd)
{
	*fd = disk_open(spool, name, O_RDONLY | O_DIRECTORY);
	return *fd >= 0;
}

/* Without its group on the files in it, the relay could read none of another user's. */
static void let_others_in(int spool, int drop)
{
	struct stat st;
	if (fstat(drop, &st) != 0 || (st.st_mode & MODE_BITS) != MODE_AS_MADE)
		return;
	bool ok = fstat(spool, &st) == 0 &&
		  fchmod(spool, (st.st_mode & 07777) | MODE_TO_PASS) == 0 &&
		  fchmod(drop, MODE) == 0 && fstat(drop, &st) == 0 && (st.st_mode & S_ISGID) &&
		  disk_sync(drop) == 0 && disk_sync(spool) == 0;
	if (!ok)
		log_event(LOG_LEVEL_WARNING, "maildrop", "reason",
			  "other users can leave no mail in it: its mode cannot be set to 3733",
			  "error", strerror(errno), NULL);
}

/* Whoever may write to it puts another queue in the place of this one. In a folder as /tmp nobody can. */
static void keep_others_out(int spool, const char *path)
{
	struct stat st;
	if (fstat(spool, &st) != 0 || !(st.st_mode & S_IWOTH) || (st.st_mode & S_ISVTX))
		return;
	bool ok = fchmod(spool, st.st_mode & 07777 & ~(mode_t)S_IWOTH) == 0;
	log_event(LOG_LEVEL_WARNING, "maildrop", "reason",
		  log_text("every user could write to the folder of the queue, %s; %s", path,
			   ok ? "that right is taken away" : "its mode cannot be set"),
		  "error", ok ? NULL : strerror(errno), NULL);
}

bool maildrop_folder_open(struct maildrop_folder *f, const char *path, struct buf *error)
{
	int spool = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->drop = f->taken = f->quarantine = -1;
	if (spool < 0)
		return put_errno(path, "", error);
	bool ok =
		disk_make_folder(spool, "maildrop") == 0 && open_part(spool, "maildrop", &f->drop);
	if (!ok)
		put_errno(path, "maildrop", error);
	else if (!(ok = open_part(spool, "taken", &f->taken)))
		put_errno(path, "taken", error);
	else if (!(ok = open_part(spool, "quarantine", &f->quarantine)))
		put_errno(path, "quarantine", error);
	if (ok)
		let_others_in(spool, f->drop);
	keep_others_out(spool, path);
	close(spool);
	return ok;
}

void maildrop_folder_close(struct maildrop_folder *f)
{
	const int fd[] = {f->drop, f->taken, f->quarantine};
	for (size_t i = 0; i < sizeof fd / sizeof fd[0]; i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

static void put_aside(struct maildrop_folder *f, int from, const char *name, const struct take *t)
{
	char id[IDENT_TEXT], user[64];
	const char *copy = log_text("%s.maildrop", ident_text(t->id, id));
	bool moved = renameat(from, name, f->quarantine, copy) == 0;
	if (moved || !f->told)
		log_event(LOG_LEVEL_ERROR, "quarantined", "id", id, "reason", t->why, "file", name,
			  "user", take_owner(t, user), "copy", moved ? copy : "it cannot be moved",
			  NULL);
	f->told |= !moved;
}

void maildrop_folder_put_aside(struct maildrop_folder *f, const struct take *t)
{
	char name[IDENT_TEXT];
	put_aside(f, f->taken, ident_text(t->id, name), t);
}

void maildrop_folder_drop(const struct maildrop_folder *f, const struct take *t)
{
	char name[IDENT_TEXT];
	log_event(LOG_LEVEL_INFO, "discard", "id", log_id(t->id), "reason", t->why, NULL);
	unlinkat(f->taken, ident_text(t->id, name), 0);
}

/* Its writer has long ended without finishing it. */
static void remove_old(const struct maildrop_folder *f, const char *name, const struct stat *st)
{
	if (time(NULL) - st->st_mtim.tv_sec > MAILDROP_UNFINISHED_S)
		unlinkat(f->drop, name, S_ISDIR(st->st_mode) ? AT_REMOVEDIR : 0);
}

static bool is_ours(const char *name)
{
	char text[IDENT_TEXT];
	uint64_t id;
	return ident_parse(name, &id) && strcmp(ident_text(id, text), name) == 0;
}

/* A file that is put aside, or can't be, takes no place among the messages. */
static void add_name(void *owner, const char *name)
{
	struct names *all = owner;
	struct take foreign = {.id = ident_new()};
	struct stat st;
	if (fstatat(all->folder->drop, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return; /* it was its owner's to remove */
	foreign.owner = st.st_uid;
	if (name[0] == '.') {
		remove_old(all->folder, name, &st);
	} else if (!S_ISREG(st.st_mode) || !is_ours(name)) {
		foreign.why = S_ISREG(st.st_mode) ? "its name is none of the maildrop's"
						  : "not a regular file";
		put_aside(all->folder, all->folder->drop, name, &foreign);
	} else if (all->n < MAILDROP_NAMES_MAX) {
		all->name[all->n++] = mem_strdup(name);
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* False: it is not claimed. */
static bool claim_file(struct maildrop_folder *f, const char *name, struct list *takes)
{
	char id[IDENT_TEXT];
	struct take *t = take_new(ident_new());
	if (renameat(f->drop, name, f->taken, ident_text(t->id, id)) != 0) {
		take_free(&t);
		return false;
	}
	list_append(takes, &t->link);
	return true;
}

void maildrop_folder_claim(struct maildrop_folder *f, struct list *takes)
{
	struct names all = {.folder = f};
	if (disk_each(f->drop, add_name, &all) != 0)
		log_event(LOG_LEVEL_ERROR, "maildrop", "error", strerror(errno), NULL);
	qsort(all.name, (size_t)all.n, sizeof all.name[0], by_text);
	for (int i = 0, claimed = 0; i < all.n; i++) {
		if (claimed < MAILDROP_BATCH)
			claimed += claim_file(f, all.name[i], takes);
		free(all.name[i]);
	}
}

bool maildrop_folder_sync(struct maildrop_folder *f)
{
	if (disk_sync(f->taken) == 0 && disk_sync(f->drop) == 0)
		return true;
	log_event(LOG_LEVEL_ERROR, "maildrop", "error", strerror(errno), NULL);
	return false;
}

static void add_left(void *owner, const char *name)
{
	uint64_t id;
	if (ident_parse(name, &id))
		list_append((struct list *)owner, &take_new(id)->link);
}

void maildrop_folder_left(struct maildrop_folder *f, struct list *takes)
{
	if (disk_each(f->taken, add_left, takes) != 0)
		log_event(LOG_LEVEL_ERROR, "maildrop", "error", strerror(errno), NULL);
}
