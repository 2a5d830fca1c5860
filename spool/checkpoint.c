/* SPDX-License-Identifier: ISC */
#include "spool/checkpoint.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "spool/disk.h"
#include "spool/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_LINE "sluice checkpoint 2\n"

enum { SIZE_MAX_BYTES = 16 << 20 };

/* Nothing in it is to be read by a start: it will be garbage, or content. */
static bool passed_over(const struct journal *j, const struct segment *s)
{
	return s->needed == 0 && !s->dirty && !s->unkept && !journal_open_segment(j, s);
}

/* Whether what a passed-over segment says may concern an envelope in this one. Within the main lane a
 * later segment holds nothing that an earlier one could speak of. */
static bool may_concern(const struct segment *passed, const struct segment *s)
{
	return passed->head.lane != LANE_MAIN || s->head.lane != LANE_MAIN ||
	       passed->head.seq > s->head.seq;
}

static bool to_be_marked(const struct journal *j, const struct segment *s)
{
	if (s->ndead == 0)
		return false;
	for (struct list *l = j->segments.next; l != &j->segments; l = l->next) {
		const struct segment *other = list_entry(l, struct segment, link);
		if (passed_over(j, other) && may_concern(other, s))
			return true;
	}
	return false;
}

/* A segment that a start passes over says it of itself as well, for whoever reads the log without a checkpoint. One that goes
 * now need not: the order in which it goes leaves behind what says that its messages are done. */
static bool mark_passed_over(struct journal *j, struct segment *s)
{
	if (s->says_spent || (s->live == 0 && !s->busy))
		return true;
	assert(!s->dirty && s->needed == 0);
	replicate_spent(j->keeper, s);
	return segment_spend(s);
}

static bool mark_read(struct journal *j, struct segment *s)
{
	if (!to_be_marked(j, s))
		return true;
	replicate_marked(j->keeper, s);
	return segment_mark(s);
}

static bool mark_segments(struct journal *j)
{
	for (struct list *l = j->segments.next; l != &j->segments; l = l->next) {
		struct segment *s = list_entry(l, struct segment, link);
		if (passed_over(j, s) ? mark_passed_over(j, s) : mark_read(j, s))
			continue;
		j->stuck = true; /* a mark that was lost without a word is never made again */
		return false;
	}
	return true;
}

/* A segment that is going may still be there at the next start, and the records that said that its messages are dead may
 * not. */
static const char *word_of_segment(const struct journal *j, const struct segment *s)
{
	if (!passed_over(j, s))
		return "read";
	return s->live > 0 ? "skip" : "gone";
}

void checkpoint_close_text(struct buf *b)
{
	buf_printf(b, "crc %08" PRIx32 "\n", crc32c(0, buf_data(b), buf_len(b)));
}

static void compose_text(const struct journal *j, struct buf *b)
{
	char name[SEGMENT_NAME];
	buf_puts(b, FIRST_LINE);
	for (struct list *l = j->segments.next; l != &j->segments; l = l->next) {
		const struct segment *s = list_entry(l, struct segment, link);
		buf_printf(b, "%s %s\n", segment_name(s->head.seq, name), word_of_segment(j, s));
	}
	checkpoint_close_text(b);
}

static bool replace_file(int folder, const struct buf *b)
{
	int fd = disk_open(folder, CHECKPOINT_NEW_NAME, O_RDWR | O_CREAT | O_TRUNC);
	if (fd < 0)
		return false;
	struct iovec v = {.iov_base = (void *)buf_data(b), .iov_len = buf_len(b)};
	bool ok = disk_write(fd, &v, 1, 0) == 0 && disk_datasync(fd) == 0;
	disk_close(fd);
	return ok && disk_rename(folder, CHECKPOINT_NEW_NAME, CHECKPOINT_NAME) == 0 &&
	       disk_sync(folder) == 0;
}

bool checkpoint_write(struct journal *j)
{
	struct buf b;
	if (j->stuck || !mark_segments(j))
		return false;
	buf_init(&b);
	compose_text(j, &b);
	bool ok = replace_file(j->folder, &b);
	if (ok)
		replicate_checkpoint(j->keeper, &b);
	buf_fini(&b);
	return ok;
}

bool checkpoint_drop(struct journal *j)
{
	return !j->stuck && mark_segments(j) &&
	       (disk_unlink(j->folder, CHECKPOINT_NAME) == 0 || errno == ENOENT) &&
	       disk_sync(j->folder) == 0;
}

bool checkpoint_open_text(struct buf *text)
{
	bool right = crc32c_text_good(buf_cstr(text), buf_len(text), FIRST_LINE);
	if (right)
		buf_shorten(text, CRC32C_LINE);
	return right;
}

void checkpoint_put_gone(struct buf *text, uint64_t seq)
{
	char name[SEGMENT_NAME];
	buf_printf(text, "%s gone\n", segment_name(seq, name));
}

static size_t parse_rows(char *text, struct checkpoint_row **rows)
{
	size_t n = 0;
	char *save;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *space = strchr(line, ' ');
		struct checkpoint_row row = {.gone = space && strcmp(space, " gone") == 0};
		row.skip = row.gone || (space && strcmp(space, " skip") == 0);
		if (space)
			*space = '\0';
		if (!segment_name_parse(line, &row.seq))
			continue;
		*rows = mem_realloc(*rows, (n + 1) * sizeof **rows);
		(*rows)[n++] = row;
	}
	return n;
}

void checkpoint_judge(const struct checkpoint_row *row, size_t n, struct segment *s)
{
	for (size_t i = 0; i < n; i++) {
		if (row[i].seq != s->head.seq)
			continue;
		s->passed_over = row[i].skip;
		s->gone = row[i].gone;
		s->spent |= row[i].skip;
	}
}

bool checkpoint_text(int folder, struct buf *text)
{
	uint64_t size = 0;
	int64_t changed_ms;
	int fd = disk_open(folder, CHECKPOINT_NAME, O_RDONLY);
	if (fd < 0)
		return errno == ENOENT;
	bool ok = disk_size(fd, &size, &changed_ms) == 0 && size > 0 && size < SIZE_MAX_BYTES &&
		  disk_read(fd, buf_reserve(text, size), size, 0) == (ssize_t)size;
	disk_close(fd);
	if (ok)
		buf_commit(text, size);
	return ok;
}

bool checkpoint_read(int folder, struct checkpoint_row **rows, size_t *n)
{
	struct buf text = {0};
	*rows = NULL;
	*n = 0;
	bool ok = checkpoint_text(folder, &text);
	if (ok && buf_len(&text) > 0) {
		char *whole = buf_cstr(&text);
		ok = crc32c_text_good(whole, buf_len(&text), FIRST_LINE);
		if (ok)
			*n = parse_rows(whole, rows);
	}
	buf_fini(&text);
	return ok;
}
