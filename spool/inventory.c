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

static bool ours(const char *name)
{
	return strcmp(name, CHECKPOINT_NAME) == 0 || strcmp(name, CHECKPOINT_NEW_NAME) == 0 ||
	       strcmp(name, JOURNAL_RESERVE) == 0 || spare_name(name);
}

static void add_name(void *owner, const char *name)
{
	struct inventory *all = owner;
	uint64_t seq;
	if (ours(name))
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

bool inventory_blank(int log, const char *name)
{
	uint8_t bytes[SEGMENT_BEGIN];
	int fd = disk_open(log, name, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : disk_read(fd, bytes, sizeof bytes, 0);
	if (fd >= 0)
		disk_close(fd);
	ssize_t zeros = 0;
	while (zeros < n && bytes[zeros] == 0)
		zeros++;
	return n >= 0 && zeros == n;
}

bool inventory_large(const char *name, uint64_t *id)
{
	char again[IDENT_TEXT];
	return ident_parse(name, id) && strcmp(ident_text(*id, again), name) == 0;
}
