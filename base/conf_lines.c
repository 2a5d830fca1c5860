/* SPDX-License-Identifier: ISC */
#include "base/conf_lines.h"

#include "base/mem.h"

void conf_lines_add(struct conf_lines *l, const void *place, int item, int line)
{
	l->line = mem_realloc(l->line, (size_t)(l->n + 1) * sizeof *l->line);
	l->line[l->n++] = (struct conf_line){place, item, line};
}

int conf_lines_find(const struct conf_lines *l, const void *place, int item, int without)
{
	for (int i = l->n - 1; i >= 0; i--)
		if (l->line[i].place == place && l->line[i].item == item)
			return l->line[i].line;
	return without;
}
