/* SPDX-License-Identifier: ISC */
#include "base/tables_impl.h"

#include "base/condition.h"
#include "base/dkim_rows.h"
#include "base/mem.h"
#include "base/name_key.h"
#include "base/table_forms.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const struct conf_list *files_of(const struct conf *c, enum table_role role)
{
	switch (role) {
#define T(name, setting, ...)                                                                      \
	case TABLE_##name:                                                                         \
		return &c->setting;
		TABLES(T)
#undef T
	default:
		return NULL;
	}
}

/* Whoever wants all mail signed does not want it unsigned for a mistake in a name. */
static void check_also(const struct conf *c, struct tables *t, struct conf_faults *faults)
{
	char own[NAME_KEY_DOMAIN];
	const struct conf_dkim *by[CONF_DKIM_MAX];
	struct dkim_rows rows = {.n = 0};
	if (!*c->dkim_also)
		return;
	name_key_domain(c->dkim_also, own);
	if (conf_dkim_find(c, own, by) == 0 && !dkim_rows_find(t, own, &rows))
		conf_fault(faults, c->file, c->dkim_also_line,
			   "dkim_also: no section dkim, and no row of dkim_keys, signs for \"%s\"",
			   c->dkim_also);
	dkim_rows_fini(&rows);
}

/* Files of routes are gathered in one list, and the users' file is no list in the configuration. */
static int line_of_name(const struct conf *c, const struct conf_lines *lines, enum table_role role,
			int i)
{
	const struct conf_list *files = files_of(c, role);
	if (role == TABLE_USERS)
		return conf_lines_find(lines, &c->auth.file, -1, 1);
	for (int r = 0; role == TABLE_RECIPIENTS && r < c->nroute; r++)
		for (int j = 0; j < c->route[r].recipients.n; j++)
			if (strcmp(c->route[r].recipients.item[j], files->item[i]) == 0)
				return conf_lines_find(lines, &c->route[r].recipients, j, 1);
	return conf_lines_find(lines, files, i, 1);
}

static struct table *read_named(const struct conf *c, const struct conf_lines *lines,
				enum table_role role, int i, struct conf_faults *faults)
{
	int before = faults->n;
	struct table *t = table_read(files_of(c, role)->item[i], table_form_of(role), c, faults);
	assert(!t == (faults->n > before)); /* what is missing has its fault */
	conf_faults_name(faults, before, c->file, line_of_name(c, lines, role, i));
	return t;
}

struct tables *tables_read(const struct conf *c, const struct conf_lines *lines,
			   struct conf_faults *faults)
{
	int before = faults->n;
	struct tables *t = mem_zalloc(sizeof *t);
	atomic_init(&t->refs, 1);
	for (int role = 0; role < TABLE_ROLES; role++) {
		const struct conf_list *files = files_of(c, (enum table_role)role);
		struct role *r = &t->of[role];
		r->table = mem_zalloc((size_t)files->n * sizeof(struct table *));
		for (; r->n < files->n; r->n++)
			r->table[r->n] = read_named(c, lines, (enum table_role)role, r->n, faults);
	}
	if (faults->n == before)
		check_also(c, t, faults);
	if (faults->n == before)
		return t;
	tables_unref(t);
	return NULL;
}

bool tables_stale(const struct tables *t)
{
	for (int role = 0; role < TABLE_ROLES; role++)
		for (int i = 0; i < t->of[role].n; i++)
			if (table_fresh(t->of[role].table[i]) == TABLE_STALE)
				return true;
	return false;
}

/* reason: the first of the faults that this file has. */
static void say_stale(const char *file, enum table_role role, const struct conf_fault *fault)
{
	char *subject = mem_printf("%s %s", tables_setting(role), file);
	char *reason = !fault	      ? NULL
		       : fault->whole ? mem_strdup(fault->text)
				      : mem_printf("line %d: %s", fault->line, fault->text);
	condition_turn(CONDITION_tables_stale, fault != NULL, subject, reason);
	free(subject);
	free(reason);
}

static struct table *renew_table(const struct conf *c, int role, int i, struct conf_faults *faults)
{
	struct table *old = c->tables->of[role].table[i];
	const char *file = files_of(c, (enum table_role)role)->item[i];
	int before = faults->n;
	if (table_fresh(old) != TABLE_STALE)
		return table_ref(old);
	struct table *new = table_read(file, table_form_of((enum table_role)role), c, faults);
	assert(new || faults->n > before);
	if (!new)
		table_faulty(old);
	say_stale(file, (enum table_role)role, new ? NULL : &faults->fault[before]);
	return new ? new : table_ref(old);
}

struct tables *tables_renew(const struct conf *c, struct conf_faults *faults)
{
	struct tables *t = mem_zalloc(sizeof *t);
	atomic_init(&t->refs, 1);
	for (int role = 0; role < TABLE_ROLES; role++) {
		struct role *r = &t->of[role];
		int n = c->tables->of[role].n;
		assert(n == files_of(c, (enum table_role)role)->n);
		r->table = mem_zalloc((size_t)n * sizeof(struct table *));
		for (; r->n < n; r->n++)
			r->table[r->n] = renew_table(c, role, r->n, faults);
	}
	return t;
}
