/* SPDX-License-Identifier: ISC */
#include "base/conf.h"

#include "base/conf_build.h"
#include "base/conf_scan.h"
#include "base/conf_value.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/refs.h"
#include "base/tables.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The configuration is whole where there are no faults. */
static struct conf *build_and_check(const struct conf_file *from, const char *file, unsigned with,
				    struct buf *errors, struct conf_faults *faults)
{
	struct conf_lines lines = {0};
	bool whole = faults->n == 0;
	struct conf *c = conf_build(from, file, &lines, faults);
	conf_lines_sort(&lines);
	/* Settings that a file broken off in the middle lacks would only look like further faults. */
	if (whole) {
		conf_check(c, &lines, faults);
		conf_aliases(c, &lines, faults);
		if (with & CONF_WITH_KEYS)
			conf_check_keys(c, &lines, faults);
		if (with & CONF_WITH_TABLES)
			c->tables = tables_read(c, &lines, faults);
	}
	conf_faults_say(faults, errors);
	free(lines.line);
	return c;
}

static struct conf *finish_parsed(const struct conf_file *from, const char *file, unsigned with,
				  struct buf *errors, struct conf_faults *faults)
{
	struct conf *c = build_and_check(from, file, with, errors, faults);
	if (faults->n == 0)
		return c;
	conf_free(c);
	return NULL;
}

struct conf *conf_read(const char *file, struct buf *errors)
{
	return conf_read_with(file, CONF_WITH_KEYS | CONF_WITH_TABLES, errors);
}

struct conf *conf_read_with(const char *file, unsigned with, struct buf *errors)
{
	struct conf_faults faults = {0};
	struct conf_file from;
	conf_file_read(&from, file, &faults);
	struct conf *c = finish_parsed(&from, file, with, errors, &faults);
	conf_file_fini(&from);
	conf_faults_fini(&faults);
	return c;
}

void conf_text_faults(const char *text, struct conf_faults *faults)
{
	struct conf_file from;
	struct buf unused = {0};
	conf_file_parse_whole(&from, text, "", faults);
	conf_unref(finish_parsed(&from, "", 0, &unused, faults));
	buf_fini(&unused);
	conf_file_fini(&from);
}

/* A setting as the text has it, whatever is wrong elsewhere. False: that can't be told. */
static bool set_by_text(char **setting, const char *text, const char *name)
{
	char *value;
	bool told = conf_scan_find(text, name, &value) && !(value && !*value);
	if (told && value) {
		free(*setting);
		*setting = mem_strdup(value);
	}
	free(value);
	return told;
}

static bool find_relay(struct conf *c)
{
	struct conf_faults unused = {0};
	char *text = conf_file_text(c->file, &unused);
	bool found = text && set_by_text(&c->spool, text, "spool");
	if (found) {
		set_by_text(&c->log, text, "log");
		set_by_text(&c->own_name, text, "hostname");
	}
	free(text);
	conf_faults_fini(&unused);
	return found;
}

struct conf *conf_read_to_ask(const char *file, struct buf *errors)
{
	struct conf_faults faults = {0};
	struct conf_file from;
	conf_file_read(&from, file, &faults);
	struct conf *c = build_and_check(&from, file, 0, errors, &faults);
	c->faulty = faults.n > 0;
	if (c->faulty && !find_relay(c)) {
		conf_free(c);
		c = NULL;
	}
	conf_file_fini(&from);
	conf_faults_fini(&faults);
	return c;
}

/* This is asked for each message: the name is folded once, and not for each section. */
const struct conf_flow *conf_flow_find(const struct conf *c, const char *name)
{
	assert(c->nflow > 0);
	char *folded = c->nflow <= 1 || name_key_plain(name) ? NULL : name_key(name);
	const char *key = folded ? folded : name;
	int found = 0;
	for (int i = 1; i < c->nflow && found == 0; i++)
		if (strcasecmp(c->flow[i].title, key) == 0)
			found = i;
	free(folded);
	return &c->flow[found];
}

bool conf_below_share(int64_t held, int64_t share, int64_t nfree)
{
	assert(held >= 0 && share >= 0 && share <= 100);
	return nfree > 0 && held * (100 - share) < share * nfree;
}

struct conf *conf_defaults(void)
{
	struct conf_faults faults = {0};
	struct conf_file nothing = {0};
	struct buf errors = {0};
	struct conf *c = finish_parsed(&nothing, "", CONF_WITH_TABLES, &errors, &faults);
	conf_faults_fini(&faults);
	buf_fini(&errors);
	return c;
}

struct conf *conf_with_tables(struct conf *c, struct tables *tables)
{
	/* All but the count, which others change meanwhile. */
	const size_t from = offsetof(struct conf, file);
	struct conf *copy = mem_alloc(sizeof *copy);
	assert(!c->whole || !c->whole->whole); /* else all before it would stay */
	memcpy((char *)copy + from, (const char *)c + from, sizeof *copy - from);
	atomic_init(&copy->refs, 1);
	copy->whole = conf_ref(c->whole ? c->whole : c);
	copy->tables = tables;
	return copy;
}

struct conf *conf_ref(struct conf *c)
{
	refs_take(&c->refs);
	return c;
}

void conf_unref(struct conf *c)
{
	if (c && refs_drop(&c->refs))
		conf_free(c);
}

static void put_fixed(const char *section, enum conf_kind kind, const void *from, struct buf *to)
{
	const struct conf_section *s = &conf_sections[kind];
	for (int i = 0; i < s->nrow; i++) {
		if (s->row[i].reload)
			continue;
		buf_printf(to, "%s%s%s", section, *section ? "." : "", s->row[i].name);
		buf_append(to, "", 1);
		conf_value_print(&s->row[i], conf_place(from, &s->row[i]), to);
		buf_append(to, "", 1);
	}
}

/* A node without a name of its own is called as its host, and keeps that name for as long as it runs. */
static void put_node(const struct conf *c, struct buf *to)
{
	bool named = *c->cluster.name || !(*c->cluster.redis || *c->cluster.nats);
	buf_puts(to, "cluster.name, which is the hostname");
	buf_append(to, "", 1);
	buf_printf(to, "\"%s\"", named ? "" : c->own_name);
	buf_append(to, "", 1);
}

/* Settings in other sections take effect at once, all of them. */
void conf_fixed(const struct conf *c, struct buf *to)
{
	put_fixed("", CONF_KIND_GLOBAL, c, to);
	put_fixed("cluster", CONF_KIND_CLUSTER, &c->cluster, to);
	put_node(c, to);
}

static void keep_fixed(enum conf_kind kind, void *to, const void *from)
{
	const struct conf_section *s = &conf_sections[kind];
	for (int i = 0; i < s->nrow; i++)
		if (!s->row[i].reload)
			conf_value_copy(&s->row[i], conf_place(to, &s->row[i]),
					conf_place(from, &s->row[i]));
}

void conf_keep_fixed(struct conf *new, const struct conf *old)
{
	keep_fixed(CONF_KIND_GLOBAL, new, old);
	keep_fixed(CONF_KIND_CLUSTER, &new->cluster, &old->cluster);
}

void conf_differences(const struct buf *fixed, const struct conf *new, struct buf *to)
{
	struct buf changed = {0};
	conf_fixed(new, &changed);
	const char *old = buf_data(fixed), *end = old + buf_len(fixed), *now = buf_data(&changed);
	while (old < end) {
		const char *name = old;
		assert(strcmp(name, now) == 0); /* they are the same settings, in the same order */
		old += strlen(old) + 1;
		now += strlen(now) + 1;
		if (strcmp(old, now) != 0)
			buf_printf(to, "%s: %s becomes %s at the next start\n", name, old, now);
		old += strlen(old) + 1;
		now += strlen(now) + 1;
	}
	buf_fini(&changed);
}
