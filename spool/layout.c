/* SPDX-License-Identifier: ISC */
#include "spool/layout.h"

#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "spool/checkpoint.h"
#include "spool/disk.h"
#include "spool/inventory.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORMAT = 2, FORMAT_OLDEST = 1, AHEAD_MS = 2000 };
#define FORMAT_TEXT "sluice spool "

static bool say_failure(const struct spool *s, const char *name, struct buf *error)
{
	buf_printf(error, "%s/%s: %s", s->conf->spool, name, strerror(errno));
	return false;
}

/* Its name is in there. A folder that we may not even open is not ours: what it names was there
 * before. */
static bool sync_parent(const char *path, size_t len)
{
	char *parent = len == 0 ? mem_strdup(*path == '/' ? "/" : ".")
				: mem_printf("%.*s/.", (int)len, path);
	int fd = disk_open(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY);
	bool ok = fd >= 0 ? disk_sync(fd) == 0 : errno == EACCES;
	int error = errno;
	if (fd >= 0)
		disk_close(fd);
	free(parent);
	errno = error;
	return ok;
}

/* The queue is no safer than its own name and those of the folders above it. */
static bool make_path(const struct spool *s)
{
	char *path = mem_strdup(s->conf->spool);
	size_t len = strlen(path), parent = 0;
	bool ok = true;
	for (size_t i = 1; ok && i <= len; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		path[i] = '\0';
		ok = disk_make_folder(AT_FDCWD, path) == 0 && sync_parent(path, parent);
		path[i] = i < len ? '/' : '\0';
		parent = i;
	}
	free(path);
	return ok;
}

static bool open_folder(struct spool *s, const char *name, int *fd, struct buf *error)
{
	if (disk_make_folder(s->folder, name) != 0)
		return say_failure(s, name, error);
	*fd = disk_open(s->folder, name, O_RDONLY | O_DIRECTORY);
	return *fd >= 0 || say_failure(s, name, error);
}

static bool take_lock(struct spool *s, struct buf *error)
{
	s->lock = disk_open(s->folder, "lock", O_RDWR | O_CREAT);
	if (s->lock < 0)
		return say_failure(s, "lock", error);
	if (disk_lock(s->lock) == 0)
		return true;
	if (errno != EWOULDBLOCK)
		return say_failure(s, "lock", error);
	buf_printf(error, "%s: another process has this queue", s->conf->spool);
	return false;
}

/* The file is there as a whole or not at all: half of it would be a format that nobody knows. */
static bool write_format(const struct spool *s)
{
	char text[32];
	int n = snprintf(text, sizeof text, FORMAT_TEXT "%d\n", FORMAT);
	struct iovec v = {.iov_base = text, .iov_len = (size_t)n};
	int fd = disk_open(s->folder, "format.new", O_WRONLY | O_CREAT | O_TRUNC);
	bool ok = fd >= 0 && disk_write(fd, &v, 1, 0) == 0 && disk_sync(fd) == 0 &&
		  disk_rename(s->folder, "format.new", "format") == 0;
	if (fd >= 0)
		disk_close(fd);
	return ok;
}

/* The segments of an older format are read as they are, and go as they empty; all that is written from
 * now on is of this one, and an older program must not touch it any more. */
static bool convert_format(const struct spool *s, int version, struct buf *error)
{
	if (!write_format(s))
		return say_failure(s, "format", error);
	log_event(LOG_LEVEL_INFO, "converted", "spool", s->conf->spool, "from", log_number(version),
		  "to", log_number(FORMAT), NULL);
	return true;
}

/* The line as a whole: half a number is none. */
static bool read_version(const char *text, int *version)
{
	char *end;
	size_t len = strlen(FORMAT_TEXT);
	if (strncmp(text, FORMAT_TEXT, len) != 0 || !isdigit((unsigned char)text[len]))
		return false;
	long n = strtol(text + len, &end, 10);
	*version = n > INT_MAX ? INT_MAX : (int)n;
	return strcmp(end, "\n") == 0 || !*end;
}

bool layout_format(int fd, const char *spool, int *version, struct buf *error)
{
	char text[32];
	ssize_t n = disk_read(fd, text, sizeof text - 1, 0);
	*version = 0;
	if (n < 0) {
		buf_printf(error, "%s/format: %s", spool, strerror(errno));
		return false;
	}
	text[n] = '\0';
	if (n > 0 && !read_version(text, version)) {
		buf_printf(error,
			   "%s/format: it is damaged, or no queue's: the line is \"" FORMAT_TEXT
			   "%d\" in a queue that this program has written",
			   spool, FORMAT);
		return false;
	}
	bool known = n == 0 || (*version >= FORMAT_OLDEST && *version <= FORMAT);
	if (!known)
		buf_printf(error,
			   "%s/format: this queue is of format %d; this program knows %d to %d",
			   spool, *version, FORMAT_OLDEST, FORMAT);
	return known;
}

static bool check_format(struct spool *s, struct buf *error)
{
	int version = 0; /* none yet */
	bool ok = true;
	int fd = disk_open(s->folder, "format", O_RDONLY);
	if (fd < 0 && errno != ENOENT)
		return say_failure(s, "format", error);
	if (fd >= 0) {
		ok = layout_format(fd, s->conf->spool, &version, error);
		disk_close(fd);
	}
	if (ok && version == 0)
		return write_format(s) || say_failure(s, "format", error);
	return ok && (version == FORMAT || convert_format(s, version, error));
}

bool layout_open(struct spool *s, struct buf *error)
{
	s->folder = make_path(s) ? disk_open_top(s->conf->spool) : -1;
	if (s->folder < 0)
		return say_failure(s, "", error);
	if (!take_lock(s, error) || !check_format(s, error) ||
	    !open_folder(s, "log", &s->journal.folder, error) ||
	    !open_folder(s, LAYOUT_LARGE, &s->large, error) ||
	    !open_folder(s, "quarantine", &s->quarantine, error) ||
	    !open_folder(s, "taken", &s->taken, error))
		return false;
	return disk_sync(s->folder) == 0 || say_failure(s, "", error);
}

/* Without a head nothing in it can be told from noise. */
static void refuse_headless(struct spool *s, const char *name, uint64_t seq)
{
	if (inventory_blank(s->journal.folder, name)) {
		disk_unlink(s->journal.folder, name);
		return;
	}
	s->keeps_orphans = true;
	s->headless = mem_realloc(s->headless, (s->nheadless + 1) * sizeof *s->headless);
	s->headless[s->nheadless++] = seq;
}

/* Mail is taken before it is known what lies in the segments. Ids follow the clock; where that had been set back when the segment was written
 * last, they followed each other, from the one that it began with. */
static void stay_above_segment(const struct segment *g, int64_t changed_ms)
{
	const uint64_t second = UINT64_C(1000000)
				<< IDENT_TIME_SHIFT; /* four million ids of a node */
	bool ahead = ident_time_ms(g->head.created) > changed_ms + AHEAD_MS;
	ident_floor(g->head.created + (ahead ? second : 0));
	/* The clock may have been set back since. A time stamp is coarse, so a second is added. */
	ident_floor((uint64_t)(changed_ms + 1000) * 1000 << IDENT_TIME_SHIFT);
}

static bool add_segment(struct spool *s, uint64_t seq, struct buf *error)
{
	char name[SEGMENT_NAME];
	int64_t changed_ms;
	segment_name(seq, name);
	s->journal.next_seq = seq + 1;
	struct segment *g = segment_open(s->journal.folder, seq, O_RDWR, &changed_ms);
	if (!g && errno != EBADMSG) {
		buf_printf(error, "%s/log/%s: %s", s->conf->spool, name, strerror(errno));
		return false;
	}
	if (!g) {
		refuse_headless(s, name, seq);
		return true;
	}
	list_append(&s->journal.older, &g->link);
	stay_above_segment(g, changed_ms);
	return true;
}

/* Rows of the last checkpoint: of segments that are there, and of those that are not. */
static void apply_checkpoint(struct spool *s, const struct inventory *all)
{
	struct checkpoint_row *row;
	char name[SEGMENT_NAME];
	size_t n;
	if (!checkpoint_read(s->journal.folder, &row, &n))
		quarantine_file(s, s->journal.folder, CHECKPOINT_NAME,
				"it is damaged; all segments are read");
	for (struct list *l = s->journal.older.next; l != &s->journal.older; l = l->next)
		checkpoint_judge(row, n, list_entry(l, struct segment, link));
	for (size_t i = 0; i < n; i++) {
		if (!row[i].gone && !inventory_has(all, row[i].seq)) {
			s->keeps_orphans = true;
			log_event(LOG_LEVEL_ERROR, "damage", "segment",
				  segment_name(row[i].seq, name), "reason",
				  "the segment is missing", NULL);
		}
		if (row[i].seq >= s->journal.next_seq)
			s->journal.next_seq = row[i].seq + 1;
	}
	free(row);
}

/* A message in taken/ keeps its id. */
static void stay_above(void *owner, const char *name)
{
	uint64_t id;
	(void)owner;
	if (ident_parse(name, &id))
		ident_floor(id);
}

bool layout_segments(struct spool *s, struct buf *error)
{
	struct inventory all;
	bool ok = inventory_read(&all, s->journal.folder) || say_failure(s, "log", error);
	for (size_t i = 0; ok && i < all.n; i++)
		ok = add_segment(s, all.seq[i], error);
	for (size_t i = 0; i < all.nforeign; i++)
		quarantine_file(s, s->journal.folder, all.foreign[i], "not a file of this queue");
	if (ok)
		apply_checkpoint(s, &all);
	spares_find(&s->journal.spares, s->journal.folder, s->journal.lane[LANE_MAIN].segment_size);
	inventory_fini(&all);
	ok = ok && (disk_each(s->taken, stay_above, NULL) == 0 || say_failure(s, "taken", error));
	s->newest = ident_new();
	return ok;
}

void layout_close(struct spool *s)
{
	const int fd[] = {s->journal.folder, s->large, s->quarantine, s->taken, s->lock, s->folder};
	for (size_t i = 0; i < sizeof fd / sizeof fd[0]; i++)
		if (fd[i] >= 0)
			disk_close(fd[i]);
}
