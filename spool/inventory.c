/* SPDX-License-Identifier: ISC */
#include "spool/inventory.h"

#include "base/ident.h"
#include "base/mem.h"
#include "spool/checkpoint.h"
#include "spool/disk.h"
#include "spool/journal.h"
#include "spool/spare.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 256 << 10 }; /* bytes */

static bool is_ours(const char *name)
{
	return strcmp(name, CHECKPOINT_NAME) == 0 || strcmp(name, CHECKPOINT_NEW_NAME) == 0 ||
	       strcmp(name, JOURNAL_RESERVE) == 0 || spare_name(name);
}

static void add_name(void *owner, const char *name)
{
	struct inventory *all = owner;
	uint64_t seq;
	if (is_ours(name))
		return;
	if (!segment_name_parse(name, &seq)) {
		all->foreign = mem_realloc(all->foreign, (all->nforeign + 1) * sizeof(char *));
		all->foreign[all->nforeign++] = mem_strdup(name);
		return;
	}
	all->seq = mem_realloc(all->seq, (all->n + 1) * sizeof *all->seq);
	all->seq[all->n++] = seq;
}

static int by_seq(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

bool inventory_read(struct inventory *all, int log)
{
	*all = (struct inventory){.n = 0};
	bool ok = disk_each(log, add_name, all) == 0;
	if (all->n > 0)
		qsort(all->seq, all->n, sizeof *all->seq, by_seq);
	return ok;
}

void inventory_fini(struct inventory *all)
{
	for (size_t i = 0; i < all->nforeign; i++)
		free(all->foreign[i]);
	free(all->foreign);
	free(all->seq);
	*all = (struct inventory){.n = 0};
}

bool inventory_has(const struct inventory *all, uint64_t seq)
{
	return all->n > 0 && bsearch(&seq, all->seq, all->n, sizeof *all->seq, by_seq);
}

static bool are_zeros(const uint8_t *bytes, ssize_t n)
{
	ssize_t i = 0;
	while (i < n && bytes[i] == 0)
		i++;
	return n >= 0 && i == n;
}

/* From there to its end. */
static bool zeros_from(int fd, uint64_t at)
{
	uint8_t *bytes = mem_alloc(PIECE);
	ssize_t n = PIECE;
	bool ok = true;
	for (; ok && n == PIECE; at += PIECE) {
		n = disk_read(fd, bytes, PIECE, at);
		ok = are_zeros(bytes, n);
	}
	free(bytes);
	return ok;
}

bool inventory_blank(int log, const char *name)
{
	uint8_t byte;
	int fd = disk_open(log, name, O_RDONLY);
	if (fd < 0)
		return false;
	/* Of the sectors of its heads a crash may leave a part. */
	bool made = disk_read(fd, &byte, 1, SEGMENT_BEGIN) == 1;
	bool blank = zeros_from(fd, made ? SEGMENT_BEGIN : 0);
	disk_close(fd);
	return blank;
}

bool inventory_large(const char *name, uint64_t *id)
{
	char again[IDENT_TEXT];
	return ident_parse(name, id) && strcmp(ident_text(*id, again), name) == 0;
}
