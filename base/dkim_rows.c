/* SPDX-License-Identifier: ISC */
#include "base/dkim_rows.h"

#include "base/mem.h"
#include "base/tables.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t";

/* "SELECTOR FILE", without what is around it. */
static bool add_row(struct dkim_rows *r, const char *text, size_t len, struct buf *why)
{
	size_t word = strcspn(text, blanks), gap;
	if (word >= len) {
		buf_puts(why, "must be SELECTOR FILE, and further ones with commas between them");
		return false;
	}
	assert(r->n < CONF_DKIM_MAX);
	struct dkim_row *row = &r->row[r->n++];
	gap = strspn(text + word, blanks);
	row->selector = mem_strndup(text, word);
	row->file = mem_strndup(text + word + gap, len - word - gap);
	if (!conf_dkim_selector_good(row->selector))
		buf_printf(why, "\"%s\" is no selector", row->selector);
	else if (row->file[0] != '/')
		buf_printf(why, "\"%s\" is not the absolute path of a file", row->file);
	return buf_len(why) == 0;
}

const char *dkim_rows_parse(const char *value, struct dkim_rows *r, struct buf *why)
{
	r->n = 0;
	for (const char *at = value;;) {
		at += strspn(at, blanks);
		size_t all = strcspn(at, ","), len = all;
		while (len > 0 && strchr(blanks, at[len - 1]))
			len--;
		if (r->n == CONF_DKIM_MAX) {
			buf_printf(why, "more than %d signatures of one message", CONF_DKIM_MAX);
			return at;
		}
		if (!add_row(r, at, len, why))
			return at;
		if (!at[all])
			return NULL;
		at += all + 1;
	}
}

void dkim_rows_fini(struct dkim_rows *r)
{
	for (int i = 0; i < r->n; i++) {
		free(r->row[i].selector);
		free(r->row[i].file);
	}
	r->n = 0;
}

bool dkim_rows_find(const struct tables *t, const char *domain, struct dkim_rows *r)
{
	struct table_origin origin;
	struct buf why = {0};
	const char *key = domain;
	char *value = tables_get(t, TABLE_DKIM_KEYS, domain, &origin);
	r->n = 0;
	for (const char *dot = strchr(domain, '.'); !value && dot; dot = strchr(dot + 1, '.'))
		value = tables_get(t, TABLE_DKIM_KEYS, key = dot, &origin);
	if (value && dkim_rows_parse(value, r, &why))
		dkim_rows_fini(r);
	snprintf(r->domain, sizeof r->domain, "%s", key + (key[0] == '.'));
	free(value);
	buf_fini(&why);
	return r->n > 0;
}

void dkim_rows_names(const struct dkim_rows *r, struct buf *to)
{
	for (int i = 0; i < r->n; i++)
		buf_printf(to, "%s%s:%s", i > 0 ? "," : "", r->domain, r->row[i].selector);
}

bool dkim_rows_signs(const struct conf *c)
{
	return c->ndkim > 0 || c->dkim_keys.n > 0;
}
