/* SPDX-License-Identifier: ISC */
/* Providers: sections of files of their own, and over them those of the configuration.
 *
 * A host is found by bisection, once for each of its labels: ".c" is looked for behind ".b.c" behind "a.b.c",
 * so that the longest suffix wins, and always whole labels.
 */
#include "base/conf_build.h"

#include "base/mem.h"
#include "base/name_key.h"
#include "base/utf8.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHIPPED "/etc/sluice/providers.conf"

struct conf_suffix {
	char *name;
	const struct conf_provider *of;
	int line;
};

static void read_file(struct conf_file *to, const char *file, struct conf_faults *faults)
{
	static const struct conf_section nothing = {.name = ""};
	const struct conf_section *sections[CONF_KINDS] = {
		[CONF_KIND_GLOBAL] = &nothing,
		[CONF_KIND_PROVIDER] = &conf_sections[CONF_KIND_PROVIDER],
	};
	char *text = conf_file_named_text(file, faults);
	if (text)
		conf_file_parse(to, text, file, sections, CONF_KINDS, faults);
	free(text);
}

/* The one that is shipped may have been removed. The defaults are those of no machine. */
static bool is_left_out(const struct conf *c, const char *file)
{
	bool missing = access(file, F_OK) != 0 && errno == ENOENT;
	return !*c->file || (missing && strcmp(file, SHIPPED) == 0);
}

static void read_named(const struct conf *c, int i, struct conf_file *to,
		       const struct conf_lines *lines, struct conf_faults *faults)
{
	int before = faults->n;
	read_file(to, c->providers.item[i], faults);
	conf_faults_name(faults, before, c->file, conf_lines_find(lines, &c->providers, i, 1));
}

struct conf_file *conf_provider_files(const struct conf *c, const struct conf_lines *lines,
				      struct conf_faults *faults)
{
	struct conf_file *file = mem_zalloc((size_t)(c->providers.n + 1) * sizeof *file);
	for (int i = 0; i < c->providers.n; i++)
		if (!is_left_out(c, c->providers.item[i]))
			read_named(c, i, &file[i], lines, faults);
	return file;
}

/* As hosts are looked up; NULL: it is no such name. */
static char *suffix_of(const char *item)
{
	char *key = name_key(item);
	size_t len = strlen(key);
	if (len > 1 && key[len - 1] == '.')
		key[len - 1] = '\0';
	if (utf8_is_ascii(key) && conf_host_good(key + (key[0] == '.')))
		return key;
	free(key);
	return NULL;
}

static void add_suffixes(struct conf *c, const struct conf_provider *p,
			 const struct conf_lines *lines, struct conf_faults *faults)
{
	for (int i = 0; i < p->mx.n; i++) {
		int line = conf_lines_find(lines, &p->mx, i, p->line);
		char *name = suffix_of(p->mx.item[i]);
		if (name)
			c->suffix[c->nsuffix++] = (struct conf_suffix){name, p, line};
		else
			conf_fault(faults, p->mx_file, line,
				   "provider \"%s\": \"%s\" is not the name of a host, nor a "
				   ".SUFFIX of such names",
				   p->title, p->mx.item[i]);
	}
}

static void check_section(const struct conf_provider *p, struct conf_faults *faults)
{
	if (!conf_title_good(p->title))
		conf_fault(faults, p->file, p->line,
			   "provider \"%s\": a name has letters, digits and . _ -, at most %d",
			   p->title, CONF_TITLE_MAX);
	if (p->mx.n == 0)
		conf_fault(faults, p->file, p->line, "provider \"%s\" has no mx", p->title);
}

static void find_transport(struct conf *c, struct conf_provider *p, const struct conf_lines *lines,
			   struct conf_faults *faults)
{
	if (!*p->transport)
		return;
	p->by = conf_find(c, CONF_KIND_TRANSPORT, p->transport);
	c->providers_carry = true;
	if (!p->by)
		conf_fault(faults, p->by_file, conf_lines_find(lines, &p->transport, -1, p->line),
			   "provider \"%s\": there is no transport \"%s\"", p->title, p->transport);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct conf_suffix *)a)->name, ((const struct conf_suffix *)b)->name);
}

/* Of two that are the same, the later one in the file is the fault. */
static int by_name_and_line(const void *a, const void *b)
{
	int order = by_name(a, b);
	return order ? order
		     : ((const struct conf_suffix *)a)->line -
			       ((const struct conf_suffix *)b)->line;
}

void conf_provider_check(struct conf *c, const struct conf_lines *lines, struct conf_faults *faults)
{
	size_t n = 0;
	for (int i = 0; i < c->nprovider; i++)
		n += (size_t)c->provider[i].mx.n;
	c->suffix = mem_zalloc((n + 1) * sizeof *c->suffix);
	for (int i = 0; i < c->nprovider; i++) {
		check_section(&c->provider[i], faults);
		add_suffixes(c, &c->provider[i], lines, faults);
		find_transport(c, &c->provider[i], lines, faults);
	}
	assert((size_t)c->nsuffix <= n);
	qsort(c->suffix, (size_t)c->nsuffix, sizeof *c->suffix, by_name_and_line);
	for (int i = 1; i < c->nsuffix; i++) {
		const struct conf_suffix *s = &c->suffix[i];
		if (by_name(s, s - 1) == 0)
			conf_fault(faults, s->of->mx_file, s->line,
				   "provider \"%s\": %s is provider \"%s\" already, at %s:%d",
				   s->of->title, s->name, s[-1].of->title, s[-1].of->mx_file,
				   s[-1].line);
	}
}

void conf_provider_free(struct conf *c)
{
	for (int i = 0; i < c->nsuffix; i++)
		free(c->suffix[i].name);
	free(c->suffix);
	free(c->provider);
}

const struct conf_provider *conf_provider_find(const struct conf *c, const char *host)
{
	char name[NAME_KEY_DOMAIN];
	if (c->nsuffix == 0 || !name_key_domain(host, name))
		return NULL;
	size_t len = strlen(name);
	if (len > 1 && name[len - 1] == '.')
		name[len - 1] = '\0';
	for (char *at = name; at; at = strchr(at + 1, '.')) {
		struct conf_suffix key = {.name = at};
		const struct conf_suffix *s =
			bsearch(&key, c->suffix, (size_t)c->nsuffix, sizeof *c->suffix, by_name);
		if (s)
			return s->of;
	}
	return NULL;
}

const struct conf_provider *conf_provider_of_answer(const struct conf *c, const struct resolve *r)
{
	const struct conf_provider *all = NULL;
	for (int i = 0; i < r->nhost && r->host[i].preference == r->host[0].preference; i++) {
		const struct conf_provider *p = conf_provider_find(c, r->host[i].name);
		if (!p || (all && p != all))
			return NULL;
		all = p;
	}
	return all;
}
