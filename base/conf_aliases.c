/* SPDX-License-Identifier: ISC */
#include "base/conf_build.h"

#include "base/conf_value.h"
#include "base/mailaddr.h"

#include <stdlib.h>
#include <string.h>

static int by_title(const void *a, const void *b)
{
	return strcmp(((const struct conf_alias *)a)->title, ((const struct conf_alias *)b)->title);
}

bool conf_alias_good(const char *key)
{
	struct mailaddr a;
	return strcmp(key, "postmaster") == 0 || mailaddr_kept(key, &a);
}

static void check_titles(const struct conf *c, struct conf_faults *faults)
{
	for (int i = 0; i < c->nalias; i++) {
		const struct conf_alias *a = &c->alias[i];
		if (!conf_alias_good(a->title))
			conf_fault(faults, c->file, a->line, "\"%s\" is not an address", a->title);
		if (i > 0 && strcmp(a->title, a[-1].title) == 0)
			conf_fault(faults, c->file, a->line,
				   "alias \"%s\" is already there, at %s:%d", a->title, c->file,
				   a[-1].line);
	}
}

static void check_section(const struct conf *c, const struct conf_alias *a,
			  const struct conf_lines *lines, struct conf_faults *faults)
{
	if (a->to.n == 0)
		conf_fault(faults, c->file, a->line, "alias \"%s\" stands for nothing", a->title);
	for (int i = 0; i < a->to.n; i++)
		if (!conf_value_keep_address(&a->to.item[i]))
			conf_fault(faults, c->file, conf_lines_find(lines, &a->to, i, a->line),
				   "\"%s\" is not an address", a->to.item[i]);
}

void conf_aliases(struct conf *c, const struct conf_lines *lines, struct conf_faults *faults)
{
	for (int i = 0; i < c->nalias; i++)
		check_section(c, &c->alias[i], lines, faults);
	if (c->nalias > 0)
		qsort(c->alias, (size_t)c->nalias, sizeof *c->alias, by_title);
	check_titles(c, faults);
}

const struct conf_alias *conf_alias_find(const struct conf *c, const char *address)
{
	struct conf_alias key = {.title = (char *)(size_t)address};
	return c->nalias == 0 ? NULL
			      : bsearch(&key, c->alias, (size_t)c->nalias, sizeof key, by_title);
}
