/* SPDX-License-Identifier: ISC */
#include "smtpd/field_order.h"

#include "base/header_field.h"
#include "base/keyed_hash.h"
#include "base/mem.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = -1 };

/* One element of a tree; elements are numbers. */
struct link {
	int left, right, up, size;
};

struct name {
	UT_hash_handle hh;
	int root;
	char lower[];
};

struct field_order {
	struct draft_field *field;
	struct link *all, *same; /* in both trees by the same number */
	struct name *names;
	uint64_t chance;
	int n, most, root, unnamed;
};

static int size_of(const struct link *t, int at)
{
	return at == NONE ? 0 : t[at].size;
}

/* The fields below have changed. */
static void settle_sums(struct link *t, int at)
{
	t[at].size = 1 + size_of(t, t[at].left) + size_of(t, t[at].right);
	if (t[at].left != NONE)
		t[t[at].left].up = at;
	if (t[at].right != NONE)
		t[t[at].right].up = at;
}

static uint64_t draw_number(struct field_order *o)
{
	o->chance ^= o->chance << 13;
	o->chance ^= o->chance >> 7;
	o->chance ^= o->chance << 17;
	return o->chance;
}

static int join_trees(struct field_order *o, struct link *t, int a, int b)
{
	if (a == NONE || b == NONE)
		return a == NONE ? b : a;
	bool first = draw_number(o) % (uint64_t)(t[a].size + t[b].size) < (uint64_t)t[a].size;
	if (first)
		t[a].right = join_trees(o, t, t[a].right, b);
	else
		t[b].left = join_trees(o, t, a, t[b].left);
	settle_sums(t, first ? a : b);
	return first ? a : b;
}

/* The first n of the tree to *a, the rest to *b. */
static void split_tree(struct link *t, int at, int n, int *a, int *b)
{
	if (at == NONE) {
		*a = *b = NONE;
		return;
	}
	int before = size_of(t, t[at].left);
	if (n <= before) {
		split_tree(t, t[at].left, n, a, &t[at].left);
		*b = at;
	} else {
		split_tree(t, t[at].right, n - before - 1, &t[at].right, b);
		*a = at;
	}
	settle_sums(t, at);
}

static void insert_element(struct field_order *o, struct link *t, int *root, int place, int element)
{
	int a, b;
	t[element] = (struct link){NONE, NONE, NONE, 1};
	split_tree(t, *root, place, &a, &b);
	*root = join_trees(o, t, join_trees(o, t, a, element), b);
	t[*root].up = NONE;
}

static void take_out(struct field_order *o, struct link *t, int *root, int place)
{
	int a, b, one;
	split_tree(t, *root, place, &a, &b);
	split_tree(t, b, 1, &one, &b);
	*root = join_trees(o, t, a, b);
	if (*root != NONE)
		t[*root].up = NONE;
}

static int element_at(const struct link *t, int at, int place)
{
	assert(place >= 0 && place < size_of(t, at));
	for (;;) {
		int before = size_of(t, t[at].left);
		if (place == before)
			return at;
		at = place < before ? t[at].left : t[at].right;
		place -= place < before ? 0 : before + 1;
	}
}

static int place_of(const struct link *t, int at)
{
	int place = size_of(t, t[at].left);
	for (int up = t[at].up; up != NONE; at = up, up = t[at].up)
		if (t[up].right == at)
			place += size_of(t, t[up].left) + 1;
	return place;
}

/* All elements from low to high, which lie in that order. */
static int build_tree(struct link *t, const int *element, int low, int high)
{
	if (low == high)
		return NONE;
	int middle = low + (high - low) / 2, at = element[middle];
	t[at] = (struct link){build_tree(t, element, low, middle),
			      build_tree(t, element, middle + 1, high), NONE, 1};
	settle_sums(t, at);
	return at;
}

/* Lower case, malloc'd, in len bytes. */
static struct name *name_of(struct field_order *o, const char *text, size_t len, bool wanted)
{
	struct name *there, *new = mem_alloc(sizeof *new + len + 1);
	for (size_t i = 0; i < len; i++)
		new->lower[i] = (char)tolower((unsigned char)text[i]);
	new->lower[len] = '\0';
	HASH_FIND(hh, o->names, new->lower, len, there);
	if (there || !wanted) {
		free(new);
		return there;
	}
	new->root = NONE;
	HASH_ADD_KEYPTR(hh, o->names, new->lower, len, new);
	return new;
}

static struct name *name_of_field(struct field_order *o, int element)
{
	const struct draft_field *f = &o->field[element];
	return name_of(o, f->text, header_field_name(f->text, f->len), true);
}

/* How many of that name stand before the place. */
static int count_before(const struct field_order *o, const struct name *name, int place)
{
	int at = name->root, n = 0;
	while (at != NONE) {
		bool before = place_of(o->all, at) < place;
		n += before ? size_of(o->same, o->same[at].left) + 1 : 0;
		at = before ? o->same[at].right : o->same[at].left;
	}
	return n;
}

struct field_order *field_order_new(const struct draft_field *f, int n, int unnamed, int more)
{
	struct field_order *o = mem_zalloc(sizeof *o);
	int *element = mem_alloc((size_t)(n + 1) * sizeof *element);
	o->most = n + more;
	o->n = n;
	o->unnamed = unnamed;
	o->chance = keyed_hash(&n, sizeof n) | 1;
	o->field = mem_alloc((size_t)(o->most + 1) * sizeof *o->field);
	o->all = mem_alloc((size_t)(o->most + 1) * sizeof *o->all);
	o->same = mem_alloc((size_t)(o->most + 1) * sizeof *o->same);
	if (n > 0)
		memcpy(o->field, f, (size_t)n * sizeof *f);
	for (int i = 0; i < n; i++)
		element[i] = i;
	o->root = build_tree(o->all, element, 0, n);
	free(element);
	for (int i = 0; i < n; i++) {
		if (i == unnamed)
			continue;
		struct name *name = name_of_field(o, i);
		insert_element(o, o->same, &name->root, size_of(o->same, name->root), i);
	}
	return o;
}

void field_order_free(struct field_order **op)
{
	struct field_order *o = *op;
	hash_each (struct name, name, o->names) {
		HASH_DEL(o->names, name);
		free(name);
	}
	free(o->field);
	free(o->all);
	free(o->same);
	free(o);
	*op = NULL;
}

int field_order_len(const struct field_order *o)
{
	return size_of(o->all, o->root);
}

int field_order_find(const struct field_order *o, const char *text, uint32_t index)
{
	const struct name *name =
		name_of((struct field_order *)(size_t)o, text, strlen(text), false);
	uint32_t number = index > 0 ? index - 1 : 0;
	if (!name || number >= (uint32_t)size_of(o->same, name->root))
		return NONE;
	return place_of(o->all, element_at(o->same, name->root, (int)number));
}

int field_order_unnamed(const struct field_order *o)
{
	return o->unnamed == NONE ? NONE : place_of(o->all, o->unnamed);
}

struct draft_field field_order_remove(struct field_order *o, int place)
{
	int element = element_at(o->all, o->root, place);
	struct name *name = name_of_field(o, element);
	assert(element != o->unnamed);
	take_out(o, o->same, &name->root, place_of(o->same, element));
	take_out(o, o->all, &o->root, place);
	return o->field[element];
}

void field_order_insert(struct field_order *o, int place, const struct draft_field *f)
{
	assert(o->n < o->most);
	assert(place >= 0 && place <= size_of(o->all, o->root));
	int element = o->n++;
	o->field[element] = *f;
	struct name *name = name_of_field(o, element);
	insert_element(o, o->same, &name->root, count_before(o, name, place), element);
	insert_element(o, o->all, &o->root, place, element);
}

static struct draft_field *put_fields(const struct field_order *o, int at, struct draft_field *to)
{
	if (at == NONE)
		return to;
	to = put_fields(o, o->all[at].left, to);
	*to++ = o->field[at];
	return put_fields(o, o->all[at].right, to);
}

void field_order_put(const struct field_order *o, struct draft_field *to)
{
	const struct draft_field *end = put_fields(o, o->root, to);
	assert(end - to == field_order_len(o));
	(void)end;
}
