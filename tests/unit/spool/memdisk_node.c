/* SPDX-License-Identifier: ISC */
/* What is seen of a file, what is stable of it, and what lies between. */
#include "tests/unit/spool/memdisk_core.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Which part of the changes comes through. */
struct survival {
	uint32_t sizes;	       /* so many of the new sizes, the oldest */
	uint32_t sector, torn; /* per cent */
	struct chance *chance; /* NULL: everything */
};

struct inode *inode_new(bool folder)
{
	struct inode *n = mem_zalloc(sizeof *n);
	n->folder = folder;
	n->changed_ms = clock_wall_ms();
	return n;
}

static void forget_changes(struct inode *n)
{
	for (size_t i = 0; i < n->nchange; i++)
		free(n->change[i].bytes);
	n->nchange = 0;
}

void inode_unref(struct inode *n)
{
	if (!n || --n->refs > 0)
		return;
	forget_changes(n);
	free(n->change);
	blocks_fini(&n->seen);
	blocks_fini(&n->stable);
	names_fini(&n->names);
	names_fini(&n->stable_names);
	free(n);
}

static struct change *add_change(struct inode *n)
{
	if (n->nchange == n->change_cap) {
		n->change_cap = n->change_cap ? n->change_cap * 2 : 8;
		n->change = mem_realloc(n->change, n->change_cap * sizeof *n->change);
	}
	n->changed_ms = clock_wall_ms();
	return &n->change[n->nchange++];
}

void inode_resize(struct inode *n, uint64_t size)
{
	*add_change(n) = (struct change){.at = size};
	blocks_resize(&n->seen, size);
}

void inode_write(struct inode *n, uint64_t at, const void *bytes, size_t len)
{
	if (len == 0)
		return;
	if (at + len > n->seen.size)
		inode_resize(n, at + len);
	struct change *c = add_change(n);
	*c = (struct change){.at = at, .len = len, .bytes = mem_alloc(len)};
	memcpy(c->bytes, bytes, len);
	blocks_write(&n->seen, at, bytes, len);
}

static void apply_write(struct blocks *b, const struct change *c, const struct survival *s)
{
	if (!s->chance) {
		blocks_write(b, c->at, c->bytes, c->len);
		return;
	}
	for (size_t done = 0, n; done < c->len; done += n) {
		n = BLOCKS_SECTOR - (size_t)((c->at + done) % BLOCKS_SECTOR);
		if (n > c->len - done)
			n = c->len - done;
		size_t kept = n;
		if (chance_percent(s->chance, s->torn))
			kept = chance_below(s->chance, (uint32_t)n);
		if (chance_percent(s->chance, s->sector))
			blocks_write(b, c->at + done, c->bytes + done, kept);
	}
}

static void apply(const struct inode *n, struct blocks *b, const struct survival *s)
{
	uint32_t sizes = 0;
	for (size_t i = 0; i < n->nchange; i++) {
		const struct change *c = &n->change[i];
		if (c->bytes)
			apply_write(b, c, s);
		else if (!s->chance || sizes++ < s->sizes)
			blocks_resize(b, c->at);
	}
}

void inode_sync(struct inode *n)
{
	apply(n, &n->stable, &(struct survival){.chance = NULL});
	forget_changes(n);
}

static uint32_t sizes_of(const struct inode *n)
{
	uint32_t sizes = 0;
	for (size_t i = 0; i < n->nchange; i++)
		sizes += !n->change[i].bytes;
	return sizes;
}

void inode_sync_fails(struct inode *n, struct chance *chance)
{
	struct survival s = {.sizes = sizes_of(n), .sector = 50, .chance = chance};
	apply(n, &n->stable, &s);
	forget_changes(n);
	if (chance_percent(chance, 50))
		blocks_copy(&n->seen, &n->stable);
}

void inode_cut(const struct inode *from, struct inode *to, struct chance *chance)
{
	static const uint8_t percent[] = {0, 0, 10, 50, 50, 90, 100, 100};
	struct survival s = {.sector = percent[chance_below(chance, sizeof percent)],
			     .torn = chance_percent(chance, 25) ? 20 : 0,
			     .chance = chance};
	s.sizes = chance_below(chance, sizes_of(from) + 1);
	if (chance_percent(chance, 50))
		s.sizes = sizes_of(from);
	blocks_copy(&to->stable, &from->stable);
	apply(from, &to->stable, &s);
	blocks_copy(&to->seen, &to->stable);
	to->changed_ms = from->changed_ms;
}
