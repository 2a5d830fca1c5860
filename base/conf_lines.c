/* SPDX-License-Identifier: ISC */
#include "base/conf_lines.h"

#include "base/mem.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

void conf_lines_add(struct conf_lines *l, const void *place, int item, int line)
{
	assert(!l->sorted);
	assert(item >= -1);
	l->line = mem_realloc(l->line, (size_t)(l->n + 1) * sizeof *l->line);
	l->line[l->n] = (struct conf_line){place, item, line, l->n};
	l->n++;
}

static int compare_to(const struct conf_line *l, const void *place, int item)
{
	uintptr_t one = (uintptr_t)l->place, other = (uintptr_t)place;
	return one != other ? (one > other) - (one < other) : l->item - item;
}

static int by_place(const void *a, const void *b)
{
	const struct conf_line *x = a, *y = b;
	int order = compare_to(x, y->place, y->item);
	return order ? order : x->given - y->given;
}

void conf_lines_sort(struct conf_lines *l)
{
	assert(!l->sorted);
	if (l->n > 0)
		qsort(l->line, (size_t)l->n, sizeof *l->line, by_place);
	l->sorted = true;
}

/* Behind the last of that place and item. */
static int find_behind(const struct conf_lines *l, const void *place, int item)
{
	int low = 0, high = l->n;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (compare_to(&l->line[middle], place, item) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int conf_lines_find(const struct conf_lines *l, const void *place, int item, int without)
{
	int behind = l->sorted ? find_behind(l, place, item) : l->n;
	for (int i = behind - 1; i >= 0; i--) {
		if (compare_to(&l->line[i], place, item) == 0)
			return l->line[i].line;
		if (l->sorted)
			break;
	}
	return without;
}
