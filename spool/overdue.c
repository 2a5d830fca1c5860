/* SPDX-License-Identifier: ISC */
#include "spool/overdue.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/ident.h"
#include "spool/disk.h"
#include "spool/spool_core.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>

#define OVERDUE_FILE "overdue"
#define OVERDUE_NEW "overdue.new"

enum {
	GENERATION = 6,		    /* decimal digits: STUB_GENERATION_MAX has so many */
	GENERATION_AT = IDENT_TEXT, /* behind the id and a blank */
	URGENT_AT = GENERATION_AT + GENERATION + 1, /* and another one */
	LINE = URGENT_AT + 2,
	LINES = 500, /* at a time */
};

static void put_line(struct buf *lines, const struct stub *stub)
{
	char id[IDENT_TEXT];
	buf_printf(lines, "%s %0*u %c\n", ident_text(stub->id, id), (int)GENERATION,
		   (unsigned)stub->generation, stub->urgent ? 'u' : '-');
}

static bool write_lines(int fd, struct buf *lines, uint64_t *at)
{
	assert(buf_len(lines) % LINE == 0);
	struct iovec v = {.iov_base = (void *)buf_data(lines), .iov_len = buf_len(lines)};
	bool ok = disk_write(fd, &v, 1, *at) == 0;
	*at += buf_len(lines);
	buf_clear(lines);
	return ok;
}

static bool write_all(const struct spool *s, int fd)
{
	const int64_t now_ms = clock_wall_ms();
	struct buf lines = {0};
	uint64_t at = 0;
	bool ok = true;
	for (uint32_t i = 1; i <= s->deferred.n && ok; i++) {
		if (s->deferred.heap[i]->due_ms <= now_ms)
			put_line(&lines, s->deferred.heap[i]);
		if (buf_len(&lines) >= LINES * LINE)
			ok = write_lines(fd, &lines, &at);
	}
	ok = ok && write_lines(fd, &lines, &at);
	buf_fini(&lines);
	return ok && disk_datasync(fd) == 0;
}

static bool is_any_due(const struct spool *s)
{
	const struct stub *first = due_first(&s->deferred);
	return first && first->due_ms <= clock_wall_ms();
}

void overdue_keep(struct spool *s)
{
	if (!s->recovered) /* what the file says was not asked for yet */
		return;
	if (!is_any_due(s)) {
		disk_unlink(s->folder, OVERDUE_FILE);
		return;
	}
	int fd = disk_open(s->folder, OVERDUE_NEW, O_WRONLY | O_CREAT | O_TRUNC);
	if (fd < 0)
		return;
	bool ok = write_all(s, fd);
	disk_close(fd);
	if (!ok || disk_rename(s->folder, OVERDUE_NEW, OVERDUE_FILE) != 0)
		disk_unlink(s->folder, OVERDUE_NEW);
}

static bool is_as_it_was(const struct stub *stub, unsigned long generation)
{
	return stub && stub->state == STUB_DEFERRED && !stub->scheduled &&
	       stub->generation == generation;
}

static void recall_line(struct spool *s, char line[LINE], int64_t now_ms)
{
	uint64_t id;
	line[GENERATION_AT - 1] = line[LINE - 1] = '\0';
	if (!ident_parse(line, &id))
		return;
	struct stub *stub = catalog_find(&s->catalog, id);
	if (!is_as_it_was(stub, strtoul(line + GENERATION_AT, NULL, 10)))
		return;
	stub_set_due(stub, now_ms);
	stub->urgent = line[URGENT_AT] == 'u';
}

void overdue_recall(struct spool *s)
{
	char lines[LINES][LINE];
	const int64_t now_ms = clock_wall_ms();
	int fd = disk_open(s->folder, OVERDUE_FILE, O_RDONLY);
	if (fd < 0)
		return;
	ssize_t n = 0;
	for (uint64_t at = 0; (n = disk_read(fd, lines, sizeof lines, at)) >= LINE;
	     at += (uint64_t)n)
		for (ssize_t i = 0; i < n / LINE; i++)
			recall_line(s, lines[i], now_ms);
	disk_close(fd);
	due_all_moved(&s->deferred);
}
