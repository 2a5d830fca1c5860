/* SPDX-License-Identifier: ISC */
#include "smtpd/alias_heard.h"

#include "base/keyed_hash.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct alias_row {
	UT_hash_handle hh;
	struct alias_row *next; /* that is wanted */
	char *value;
	bool heard;
	char key[];
};

static struct alias_row *find_row(const struct alias_heard *h, const char *key)
{
	struct alias_row *row;
	HASH_FIND_STR(h->row, key, row);
	return row;
}

static struct alias_row *add_wanted(struct alias_heard *h, const char *key)
{
	struct alias_row *row = mem_zalloc(sizeof *row + strlen(key) + 1);
	memcpy(row->key, key, strlen(key));
	h->bytes += sizeof *row + strlen(key);
	HASH_ADD_STR(h->row, key, row);
	if (h->last)
		h->last->next = row;
	else
		h->wanted = row;
	h->last = row;
	return row;
}

bool alias_heard_get(struct alias_heard *h, const char *key, const char **value)
{
	struct alias_row *row = find_row(h, key);
	if (!row)
		row = add_wanted(h, key);
	*value = row->value;
	return row->heard;
}

const char *alias_heard_wanted(const struct alias_heard *h)
{
	return h->wanted ? h->wanted->key : NULL;
}

void alias_heard_put(struct alias_heard *h, const char *value)
{
	struct alias_row *row = h->wanted;
	assert(row && !row->heard);
	row->heard = true;
	row->value = mem_strdup(value);
	size_t said = value ? strlen(value) : 0;
	h->bytes += said;
	h->said += said;
	h->wanted = row->next;
	if (!h->wanted)
		h->last = NULL;
}

void alias_heard_forget(struct alias_heard *h)
{
	hash_each (struct alias_row, row, h->row) {
		HASH_DEL(h->row, row);
		free(row->value);
		free(row);
	}
	*h = (struct alias_heard){0};
}
