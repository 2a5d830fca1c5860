/* SPDX-License-Identifier: ISC */
/* Names in folders: those that are seen, those that are stable, the changes between. */
#include "tests/unit/spool/memdisk_core.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void names_fini(struct names *all)
{
	for (size_t i = 0; i < all->n; i++) {
		free(all->of[i].text);
		inode_unref(all->of[i].node);
	}
	free(all->of);
	*all = (struct names){.n = 0};
}

static struct name *find(const struct names *all, const char *text)
{
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->of[i].text, text) == 0)
			return &all->of[i];
	return NULL;
}

struct inode *inode_find(const struct inode *folder, const char *name)
{
	const struct name *found = find(&folder->names, name);
	return found ? found->node : NULL;
}

static void set(struct names *all, const char *text, struct inode *node)
{
	struct name *there = find(all, text);
	node->refs++;
	if (there) {
		inode_unref(there->node);
		there->node = node;
		return;
	}
	if (all->n == all->cap) {
		all->cap = all->cap ? all->cap * 2 : 8;
		all->of = mem_realloc(all->of, all->cap * sizeof *all->of);
	}
	all->of[all->n++] = (struct name){.text = mem_strdup(text), .node = node};
}

/* Another file that has the name by now keeps it. */
static void unset(struct names *all, const char *text, const struct inode *node)
{
	struct name *there = find(all, text);
	if (!there || there->node != node)
		return;
	free(there->text);
	inode_unref(there->node);
	*there = all->of[--all->n];
}

void names_copy(struct names *to, const struct names *from)
{
	for (size_t i = 0; i < from->n; i++)
		set(to, from->of[i].text, from->of[i].node);
}

void names_apply(const struct naming *c, struct names *from, struct names *to)
{
	c->node->refs++;
	if (c->from)
		unset(from, c->from, c->node);
	if (c->to)
		set(to, c->to, c->node);
	inode_unref(c->node);
}

void naming_add(struct memdisk *d, struct inode *node, struct inode *from_folder, const char *from,
		struct inode *to_folder, const char *to)
{
	if (d->nnaming == d->naming_cap) {
		d->naming_cap = d->naming_cap ? d->naming_cap * 2 : 16;
		d->naming = mem_realloc(d->naming, d->naming_cap * sizeof *d->naming);
	}
	struct naming *c = &d->naming[d->nnaming++];
	*c = (struct naming){.node = node, .from_folder = from_folder, .to_folder = to_folder};
	c->from = from ? mem_strdup(from) : NULL;
	c->to = to ? mem_strdup(to) : NULL;
	node->refs++;
	if (from_folder)
		from_folder->refs++;
	if (to_folder)
		to_folder->refs++;
	names_apply(c, from ? &from_folder->names : NULL, to ? &to_folder->names : NULL);
}

static void forget(struct naming *c)
{
	free(c->from);
	free(c->to);
	inode_unref(c->node);
	inode_unref(c->from_folder);
	inode_unref(c->to_folder);
}

void naming_sync(struct memdisk *d, const struct inode *folder)
{
	size_t kept = 0;
	for (size_t i = 0; i < d->nnaming; i++) {
		struct naming *c = &d->naming[i];
		if ((c->to_folder ? c->to_folder : c->from_folder) != folder) {
			d->naming[kept++] = *c;
			continue;
		}
		names_apply(c, c->from ? &c->from_folder->stable_names : NULL,
			    c->to ? &c->to_folder->stable_names : NULL);
		forget(c);
	}
	d->nnaming = kept;
}

void naming_fini(struct memdisk *d)
{
	for (size_t i = 0; i < d->nnaming; i++)
		forget(&d->naming[i]);
	free(d->naming);
	d->naming = NULL;
	d->nnaming = d->naming_cap = 0;
}
