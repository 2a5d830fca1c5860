/* SPDX-License-Identifier: ISC */
#include "replica/life.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "replica/format.h"
#include "spool/disk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODE_FILE "node"
#define PAST_FILE "node.past"
#define ASIDE "adopted"
#define NAME " name="

enum { NODE_TEXT = 200 };

static const char *const bonds[] = {
	[EPOCH_MEMBER] = "", [EPOCH_DRAINED] = " is=drained", [EPOCH_LEFT] = " is=left"};

static bool parse_node(const char *text, struct epoch_own *own)
{
	/* Older versions wrote no beat. */
	if (sscanf(text, "life=%16" SCNx64 " epoch=%" SCNu64 " beat=%" SCNu32, &own->life,
		   &own->epoch, &own->beat) < 2)
		return false;
	const char *name = strstr(text, NAME);
	if (name)
		snprintf(own->name, sizeof own->name, "%.*s",
			 (int)strcspn(name + strlen(NAME), " \n"), name + strlen(NAME));
	for (int i = EPOCH_DRAINED; i <= EPOCH_LEFT; i++)
		if (strstr(text, bonds[i]))
			own->bond = (enum epoch_bond)i;
	return true;
}

static bool read_node(int folder, struct epoch_own *own)
{
	char text[NODE_TEXT];
	*own = (struct epoch_own){.life = 0};
	int fd = disk_open(folder, NODE_FILE, O_RDONLY);
	if (fd < 0)
		return errno == ENOENT;
	ssize_t n = disk_read(fd, text, sizeof text - 1, 0);
	disk_close(fd);
	text[n > 0 ? n : 0] = '\0';
	if (n >= 0 && parse_node(text, own))
		return true;
	errno = n < 0 ? errno : EBADMSG;
	return false;
}

void life_begin(struct epoch_own *own)
{
	own->life = own->epoch = 0;
	own->beat = 0;
	own->bond = EPOCH_MEMBER;
	while (own->life == 0)
		disk_salt(&own->life, sizeof own->life);
}

bool life_read(const char *spool, struct epoch_own *own)
{
	int folder = disk_open_top(spool);
	bool ok = folder >= 0 && read_node(folder, own);
	int error = errno;
	disk_close(folder);
	if (ok && own->life == 0)
		life_begin(own);
	errno = error;
	return ok;
}

static bool write_file(const char *spool, const char *name, const char *text)
{
	char *new = mem_printf("%s.new", name);
	struct iovec v = {.iov_base = (void *)text, .iov_len = strlen(text)};
	int folder = disk_open_top(spool);
	int fd = folder >= 0 ? disk_open(folder, new, O_WRONLY | O_CREAT | O_TRUNC) : -1;
	bool ok = fd >= 0 && disk_write(fd, &v, 1, 0) == 0 && disk_sync(fd) == 0 &&
		  disk_rename(folder, new, name) == 0 && disk_sync(folder) == 0;
	int error = errno;
	disk_close(fd);
	disk_close(folder);
	free(new);
	errno = error;
	return ok;
}

bool life_write(const char *spool, const struct epoch_own *own)
{
	char text[NODE_TEXT];
	assert(own->bond <= EPOCH_LEFT);
	snprintf(text, sizeof text,
		 "life=%016" PRIx64 " epoch=%" PRIu64 " beat=%" PRIu32 "%s%s%s\n", own->life,
		 own->epoch, own->beat, *own->name ? NAME : "", own->name, bonds[own->bond]);
	return write_file(spool, NODE_FILE, text);
}

bool life_end(const char *spool)
{
	return write_file(spool, PAST_FILE, "");
}

static char *had_file(const char *node)
{
	char token[REPLICA_TOKEN];
	return mem_printf("had-%s", replica_token(node, token));
}

bool life_note_had(const char *spool, const char *node, uint64_t epoch)
{
	char *name = had_file(node), *text = mem_printf("%" PRIu64 "\n", epoch);
	bool ok = write_file(spool, name, text);
	free(name);
	free(text);
	return ok;
}

static bool file_says_epoch(int folder, const char *name, uint64_t epoch)
{
	char text[32] = "";
	int fd = disk_open(folder, name, O_RDONLY);
	if (fd < 0)
		return errno != ENOENT;
	bool unread = disk_read(fd, text, sizeof text - 1, 0) < 0;
	disk_close(fd);
	return unread || strtoull(text, NULL, 10) == epoch;
}

bool life_had(const char *spool, const char *node, uint64_t epoch)
{
	char *name = had_file(node);
	int folder = disk_open_top(spool);
	bool had = folder < 0 || file_says_epoch(folder, name, epoch);
	disk_close(folder);
	free(name);
	return had;
}

/* A file that is not there was moved before, or never was. */
static bool move_name(int from, int to, const char *name)
{
	return disk_move(from, name, to, name) == 0 || errno == ENOENT;
}

static bool is_leftover(const char *name)
{
	return strncmp(name, LIFE_ADOPTED_FROM, strlen(LIFE_ADOPTED_FROM)) == 0;
}

struct adopted_from {
	int from, to;
	bool ok;
};

static void move_adopted(void *owner, const char *name)
{
	struct adopted_from *a = owner;
	if (is_leftover(name))
		a->ok &= move_name(a->from, a->to, name);
}

/* Of a queue, without the node's file. */
static const char *const parts[] = {"log", "large", "adopting", "format"};

/* The file that says so goes when all else has gone. */
static bool move_all(int folder, int to)
{
	struct adopted_from a = {.from = folder, .to = to, .ok = true};
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (!move_name(folder, to, parts[i]))
			return false;
	return disk_each(folder, move_adopted, &a) == 0 && a.ok && disk_sync(to) == 0 &&
	       move_name(folder, to, NODE_FILE) && disk_sync(to) == 0 && disk_sync(folder) == 0 &&
	       disk_unlink(folder, PAST_FILE) == 0 && disk_sync(folder) == 0;
}

/* A name that can't be opened may be there. */
static bool is_there(int folder, const char *name)
{
	int fd = disk_open(folder, name, O_RDONLY);
	disk_close(fd);
	return fd >= 0 || errno != ENOENT;
}

/* Else it was begun, and goes on. */
static bool holds_another(int aside, int folder)
{
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		if (is_there(aside, parts[i]) && is_there(folder, parts[i]))
			return true;
	return is_there(aside, NODE_FILE);
}

/* One of the same life and epoch may have been put aside before a backup was put back. -1 and errno. */
static int open_aside(int folder, const struct epoch_own *own, char *name, size_t size)
{
	int len = snprintf(name, size, ASIDE "/%" PRIu64 "-%016" PRIx64, own->epoch, own->life);
	assert(len > 0 && (size_t)len < size);
	for (int times = 2;; times++) {
		int to = disk_make_folder(folder, name) == 0
				 ? disk_open(folder, name, O_RDONLY | O_DIRECTORY)
				 : -1;
		if (to < 0 || !holds_another(to, folder))
			return to;
		disk_close(to);
		snprintf(name + len, size - (size_t)len, "-%d", times);
	}
}

static bool put_aside(int folder, struct epoch_own *own, char *name, size_t size)
{
	if (!read_node(folder, own) || disk_make_folder(folder, ASIDE) != 0)
		return false;
	int to = open_aside(folder, own, name, size);
	bool ok = to >= 0 && move_all(folder, to);
	int error = errno;
	disk_close(to);
	errno = error;
	return ok;
}

static bool put_past_aside(int folder, const char *spool, struct buf *error)
{
	char name[80];
	struct epoch_own own;
	int lock = disk_open(folder, "lock", O_RDWR | O_CREAT);
	bool ok = lock >= 0 && disk_lock(lock) == 0 && put_aside(folder, &own, name, sizeof name);
	if (!ok)
		buf_printf(error,
			   "%s: the queue that another node has adopted can't be put aside: %s",
			   spool, strerror(errno));
	else
		log_event(LOG_LEVEL_WARNING, "node", "state", "put aside", "folder", name, "reason",
			  own.bond == EPOCH_DRAINED ? "this queue was handed over to other nodes"
						    : "another node has adopted this queue",
			  NULL);
	disk_close(lock);
	return ok;
}

/* A queue of which nobody can say that it is past is not opened: another node may be sending its mail. */
bool life_put_aside(const char *spool, struct buf *error)
{
	int folder = disk_open_top(spool);
	int past = folder >= 0 ? disk_open(folder, PAST_FILE, O_RDONLY) : -1;
	bool ok = past >= 0 || errno == ENOENT;
	if (!ok)
		buf_printf(error, "%s: %s", spool, strerror(errno));
	if (past >= 0) {
		ok = put_past_aside(folder, spool, error);
		disk_close(past);
	}
	disk_close(folder);
	return ok;
}

static void keep_aside(int folder, const char *name, const char *reason)
{
	char *to = mem_printf(ASIDE "/%s-%" PRId64, name, clock_wall_ms());
	bool ok = disk_make_folder(folder, ASIDE) == 0 &&
		  disk_move(folder, name, folder, to) == 0 && disk_sync(folder) == 0;
	log_event(ok ? LOG_LEVEL_WARNING : LOG_LEVEL_ERROR, "node", "state",
		  ok ? "put aside" : "failed", "folder", ok ? to : name, "reason",
		  ok ? reason : strerror(errno), NULL);
	free(to);
}

void life_keep(const char *spool, const char *name, const char *reason)
{
	int folder = disk_open_top(spool);
	if (folder < 0)
		return;
	keep_aside(folder, name, reason);
	disk_close(folder);
}

struct leftovers {
	void (*found)(void *owner, const char *name);
	void *owner;
};

static void judge_name(void *owner, const char *name)
{
	const struct leftovers *l = owner;
	if (is_leftover(name))
		l->found(l->owner, name);
}

bool life_each_leftover(const char *spool, void (*found)(void *owner, const char *name),
			void *owner)
{
	struct leftovers l = {.found = found, .owner = owner};
	int folder = disk_open_top(spool);
	if (folder < 0)
		return false;
	bool ok = disk_each(folder, judge_name, &l) == 0;
	disk_close(folder);
	return ok;
}

struct keeping {
	const char *spool, *reason;
};

static void keep_leftover(void *owner, const char *name)
{
	const struct keeping *k = owner;
	life_keep(k->spool, name, k->reason);
}

void life_keep_leftovers(const char *spool, const char *reason)
{
	life_each_leftover(spool, keep_leftover,
			   &(struct keeping){.spool = spool, .reason = reason});
}

struct removing {
	int folder;
};

static void remove_name(void *owner, const char *name)
{
	struct removing *r = owner;
	if (disk_unlink(r->folder, name) == 0)
		return;
	struct removing below = {.folder = disk_open(r->folder, name, O_RDONLY | O_DIRECTORY)};
	if (below.folder < 0)
		return;
	disk_each(below.folder, remove_name, &below);
	disk_close(below.folder);
	unlinkat(r->folder, name, AT_REMOVEDIR);
}

void life_remove(const char *spool, const char *name)
{
	struct removing r = {.folder = disk_open_top(spool)};
	if (r.folder < 0)
		return;
	remove_name(&r, name);
	disk_sync(r.folder);
	disk_close(r.folder);
}
