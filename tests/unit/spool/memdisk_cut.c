/* SPDX-License-Identifier: ISC */
/* A disk is made, ends, and is cut off from its power. */
#include "tests/unit/spool/memdisk_core.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

struct memdisk *memdisk_new(void)
{
	struct memdisk *d = mem_zalloc(sizeof *d);
	d->root = inode_new(true);
	d->root->refs = 1;
	d->room = INT64_C(1) << 40;
	return d;
}

void memdisk_free(struct memdisk **dp)
{
	struct memdisk *d = *dp;
	if (!d)
		return;
	naming_fini(d);
	inode_unref(d->root);
	free(d);
	*dp = NULL;
}

/* The files and folders that a cut finds, beside those that they come from. */
struct pairs {
	struct pair {
		const struct inode *from;
		struct inode *to;
	} * of;
	size_t n, cap;
};

static struct inode *counterpart(struct pairs *p, const struct inode *from)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->of[i].from == from)
			return p->of[i].to;
	if (p->n == p->cap) {
		p->cap = p->cap ? p->cap * 2 : 16;
		p->of = mem_realloc(p->of, p->cap * sizeof *p->of);
	}
	struct inode *to = inode_new(from->folder);
	to->refs = 1; /* of the table */
	p->of[p->n++] = (struct pair){.from = from, .to = to};
	return to;
}

static void cut_names(const struct memdisk *d, struct pairs *p, struct chance *chance)
{
	static const uint8_t percent[] = {0, 0, 50, 50, 100, 100};
	uint32_t kept = percent[chance_below(chance, sizeof percent)];
	for (size_t i = 0; i < d->nnaming; i++) {
		const struct naming *c = &d->naming[i];
		if (!chance_percent(chance, kept))
			continue;
		struct inode *from = c->from ? counterpart(p, c->from_folder) : NULL;
		struct inode *to = c->to ? counterpart(p, c->to_folder) : NULL;
		struct naming copy = *c;
		copy.node = counterpart(p, c->node);
		names_apply(&copy, from ? &from->names : NULL, to ? &to->names : NULL);
	}
}

/* The table grows while it is walked: each node brings those that it names. */
static void cut_stable_names(struct pairs *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct names *from = &p->of[i].from->stable_names;
		for (size_t k = 0; k < from->n; k++) {
			struct naming c = {.node = counterpart(p, from->of[k].node),
					   .to = from->of[k].text};
			names_apply(&c, NULL, &p->of[i].to->names);
		}
	}
}

struct memdisk *memdisk_cut(const struct memdisk *d, struct chance *chance)
{
	struct memdisk *cut = memdisk_new();
	struct pairs p = {.n = 0};
	inode_unref(cut->root);
	cut->root = counterpart(&p, d->root);
	/* A folder whose own name is lost may still be named by changes. */
	for (size_t i = 0; i < d->nnaming; i++) {
		counterpart(&p, d->naming[i].node);
		if (d->naming[i].to_folder)
			counterpart(&p, d->naming[i].to_folder);
	}
	cut_stable_names(&p);
	cut_names(d, &p, chance);
	cut->root->refs++;
	for (size_t i = 0; i < p.n; i++) {
		struct inode *to = p.of[i].to;
		names_copy(&to->stable_names, &to->names);
		if (!to->folder)
			inode_cut(p.of[i].from, to, chance);
	}
	for (size_t i = 0; i < p.n; i++)
		inode_unref(p.of[i].to);
	free(p.of);
	cut->chance = *chance;
	return cut;
}

/* The table grows as above. */
static void copy_names(struct pairs *p)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct names *from = &p->of[i].from->names;
		for (size_t k = 0; k < from->n; k++) {
			struct naming c = {.node = counterpart(p, from->of[k].node),
					   .to = from->of[k].text};
			names_apply(&c, NULL, &p->of[i].to->names);
		}
	}
}

struct memdisk *memdisk_copy(const struct memdisk *d)
{
	struct memdisk *copy = memdisk_new();
	struct pairs p = {.n = 0};
	inode_unref(copy->root);
	copy->root = counterpart(&p, d->root);
	copy->root->refs++;
	copy_names(&p);
	for (size_t i = 0; i < p.n; i++) {
		struct inode *to = p.of[i].to;
		names_copy(&to->stable_names, &to->names);
		blocks_copy(&to->seen, &p.of[i].from->seen);
		blocks_copy(&to->stable, &p.of[i].from->seen);
		to->changed_ms = p.of[i].from->changed_ms;
	}
	for (size_t i = 0; i < p.n; i++)
		inode_unref(p.of[i].to);
	free(p.of);
	copy->chance = d->chance;
	copy->room = d->room;
	return copy;
}

void memdisk_freeze(struct memdisk *d, bool frozen)
{
	d->frozen = frozen;
}

void memdisk_chance(struct memdisk *d, uint64_t seed)
{
	d->chance.state = seed;
}

void memdisk_fail(struct memdisk *d, enum memdisk_call call, int nth, int error, bool for_good)
{
	d->fail_at[call] = nth ? d->count[call] + nth : 0;
	d->fail_error[call] = error;
	d->fail_for_good[call] = for_good;
}

bool memdisk_failed(const struct memdisk *d)
{
	return d->failed;
}

int memdisk_count(const struct memdisk *d, enum memdisk_call call)
{
	return d->count[call];
}

void memdisk_room(struct memdisk *d, int64_t bytes)
{
	d->room = bytes;
}
