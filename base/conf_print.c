/* SPDX-License-Identifier: ISC */
#include "base/conf_value.h"

#include <string.h>

/* Is name the section that full lies in, or with its section the setting that it is? */
static bool is_wanted(const char *full, const char *name)
{
	size_t len = name ? strlen(name) : 0;
	return !name || (strncmp(full, name, len) == 0 &&
			 (full[len] == '.' || (full[len] == '\0' && strchr(name, '.'))));
}

/* Is it the name of the setting, in any section or in none? */
static bool last_part(const char *full, const char *name)
{
	const char *dot = strrchr(full, '.');
	return strcmp(dot ? dot + 1 : full, name) == 0;
}

/* section NULL: its defaults, without a title. */
static bool print_section(const struct conf_section *s, const void *section, const char *name,
			  bool (*is)(const char *full, const char *name), struct buf *to)
{
	bool found = false;
	struct buf full = {0};
	for (int i = 0; i < s->nrow; i++) {
		buf_clear(&full);
		if (s != &conf_sections[CONF_KIND_GLOBAL])
			buf_printf(&full, "%s.", s->name);
		if (s->titled && section)
			buf_printf(&full, "%s.", ((const struct conf_titled *)section)->title);
		buf_puts(&full, s->row[i].name);
		if (!is(buf_cstr(&full), name))
			continue;
		found = true;
		buf_printf(to, "%s = ", buf_cstr(&full));
		if (section)
			conf_value_print(&s->row[i], conf_place(section, &s->row[i]), to);
		else
			conf_value_print_default(&s->row[i], to);
		buf_puts(to, "\n");
	}
	buf_fini(&full);
	return found;
}

static bool print_all(const struct conf *c, bool untitled, const char *name,
		      bool (*is)(const char *full, const char *name), struct buf *to)
{
	bool found = false;
	for (enum conf_kind kind = 0; kind < CONF_KINDS; kind++) {
		const struct conf_section *s = &conf_sections[kind];
		int n = conf_count(c, kind);
		for (int i = 0; i < n; i++)
			found |= print_section(s, conf_at(c, kind, i), name, is, to);
		if (n == 0 && untitled)
			found |= print_section(s, NULL, name, is, to);
	}
	return found;
}

static bool print_named(const struct conf *c, bool untitled, const char *name, struct buf *to)
{
	return print_all(c, untitled, name, is_wanted, to) ||
	       (name && print_all(c, untitled, name, last_part, to));
}

bool conf_print(const struct conf *c, const char *name, struct buf *to)
{
	return print_named(c, false, name, to);
}

bool conf_print_default(const struct conf *defaults, const char *name, struct buf *to)
{
	return print_named(defaults, true, name, to);
}
