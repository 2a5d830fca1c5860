/* SPDX-License-Identifier: ISC */
#include "spool/adoption.h"

#include "base/buf.h"
#include "base/ident.h"
#include "base/log.h"
#include "base/mem.h"
#include "spool/commit.h"
#include "spool/disk.h"
#include "spool/spool_core.h"
#include "spool/op.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define ADOPTION_FILE "adopting"

enum { LINE = IDENT_TEXT }; /* an id, and "\n" where its text has a NUL */

/* The rest of a last line that a crash has left is written over. */
static bool append_lines(int fd, const struct buf *lines)
{
	uint64_t size;
	int64_t changed_ms;
	struct iovec v = {.iov_base = (void *)buf_data(lines), .iov_len = buf_len(lines)};
	return disk_size(fd, &size, &changed_ms) == 0 &&
	       disk_write(fd, &v, 1, size - size % LINE) == 0 && disk_datasync(fd) == 0;
}

bool adoption_note(int folder, const uint64_t *id, size_t n)
{
	struct buf lines = {0};
	char text[IDENT_TEXT];
	for (size_t i = 0; i < n; i++)
		buf_printf(&lines, "%s\n", ident_text(id[i], text));
	assert(buf_len(&lines) == n * LINE); /* a reader counts on it */
	int fd = disk_open(folder, ADOPTION_FILE, O_RDWR | O_CREAT);
	bool ok = fd >= 0 && append_lines(fd, &lines) && disk_sync(folder) == 0;
	if (fd >= 0)
		disk_close(fd);
	buf_fini(&lines);
	return ok;
}

bool adoption_is_noted(int folder)
{
	int fd = disk_open(folder, ADOPTION_FILE, O_RDONLY);
	bool none = fd < 0 && errno == ENOENT;
	if (fd >= 0)
		disk_close(fd);
	return !none;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static bool read_lines(struct adoption *a, int fd)
{
	char line[LINE];
	ssize_t n;
	for (uint64_t at = 0; (n = disk_read(fd, line, sizeof line, at)) == LINE; at += LINE) {
		a->id = mem_realloc(a->id, (a->n + 1) * sizeof *a->id);
		line[LINE - 1] = '\0';
		a->n += ident_parse(line, &a->id[a->n]);
	}
	if (a->n > 0)
		qsort(a->id, a->n, sizeof *a->id, compare_ids);
	return n >= 0;
}

bool adoption_read(struct adoption *a, int folder)
{
	*a = (struct adoption){.n = 0};
	int fd = disk_open(folder, ADOPTION_FILE, O_RDONLY);
	a->all = fd < 0 && errno != ENOENT;
	if (fd < 0)
		return !a->all;
	a->all = !read_lines(a, fd);
	disk_close(fd);
	return !a->all;
}

bool adoption_has(const struct adoption *a, uint64_t id)
{
	return a->all || (a->n > 0 && bsearch(&id, a->id, a->n, sizeof *a->id, compare_ids));
}

void adoption_fini(struct adoption *a)
{
	free(a->id);
	*a = (struct adoption){.n = 0};
}

int adoption_end(int folder)
{
	if (disk_unlink(folder, ADOPTION_FILE) != 0 && errno != ENOENT)
		return errno;
	return disk_sync(folder) == 0 ? 0 : errno;
}

static void release_stubs(struct spool *s)
{
	struct catalog_at at = catalog_from(&s->catalog, 0);
	for (struct stub *stub; (stub = catalog_step(&s->catalog, &at));) {
		if (stub->state != STUB_ADOPTED)
			continue;
		stub_enter(s, stub,
			   stub->held	       ? STUB_HELD
			   : stub->due_ms == 0 ? STUB_INCOMING
					       : STUB_DEFERRED);
	}
	s->more = true;
}

void adoption_release(struct spool *s)
{
	assert(loop_is_ours(s->loop));
	int error = adoption_end(s->folder);
	s->released = !s->recovered;
	if (error)
		log_event(LOG_LEVEL_ERROR, "adopting_left", "error", strerror(error), NULL);
	release_stubs(s);
}

/* Where the file could not be read at the start all of the queue waits as if it had been taken, our own mail, too. */
static bool give_back_noted(struct spool *s)
{
	struct stub *stub;
	struct adoption noted;
	bool read = adoption_read(&noted, s->folder);
	for (uint64_t id = 0; read && (stub = catalog_next(&s->catalog, id)) != NULL;) {
		id = stub->id;
		if (stub->state == STUB_ADOPTED && adoption_has(&noted, id))
			op_give_back(s, stub);
	}
	adoption_fini(&noted);
	return read;
}

void adoption_disown(struct spool *s, struct spool_disown *d)
{
	assert(loop_is_ours(s->loop));
	/* All that was to be stored before is in the queue then. The file is what tells them from ours, so it goes when they have gone. */
	d->done = s->recovered && s->syncing == 0 && commit_now(s) && give_back_noted(s) &&
		  commit_now(s) && adoption_end(s->folder) == 0;
	if (d->done)
		release_stubs(s);
	loop_post(d->reply_to, &d->note);
}
