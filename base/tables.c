/* SPDX-License-Identifier: ISC */
#include "base/tables_impl.h"

#include "base/conf_value.h"
#include "base/mailaddr.h"
#include "base/name_key.h"
#include "base/refs.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const char *tables_setting(enum table_role role)
{
	assert(role < TABLE_ROLES);
	static const char *const settings[] = {
#define T(role, setting, ...) [TABLE_##role] = #setting,
		TABLES(T)
#undef T
	};
	return settings[role];
}

struct tables *tables_ref(struct tables *t)
{
	refs_take(&t->refs);
	return t;
}

void tables_unref(struct tables *t)
{
	if (!t || !refs_drop(&t->refs))
		return;
	for (int role = 0; role < TABLE_ROLES; role++) {
		for (int i = 0; i < t->of[role].n; i++)
			table_unref(t->of[role].table[i]);
		free(t->of[role].table);
	}
	free(t);
}

int tables_count(const struct tables *t, enum table_role role)
{
	assert(role < TABLE_ROLES);
	return t ? t->of[role].n : 0;
}

const char *tables_file(const struct tables *t, enum table_role role, int i)
{
	assert(i >= 0 && i < tables_count(t, role));
	return table_file(t->of[role].table[i]);
}

/* Those that a session looks up, which can wait, or the maildrop. */
bool tables_may_ask(enum table_role role)
{
	assert(role < TABLE_ROLES);
	const unsigned sessions = 1U << TABLE_CLIENT_ACCESS | 1U << TABLE_HELO_ACCESS |
				  1U << TABLE_SENDER_ACCESS | 1U << TABLE_RECIPIENT_ACCESS |
				  1U << TABLE_SENDER_LOGINS | 1U << TABLE_RECIPIENTS |
				  1U << TABLE_FLOWS | 1U << TABLE_LIMITS | 1U << TABLE_ALIASES;
	return sessions >> role & 1;
}

bool tables_asked(const struct tables *t, enum table_role role)
{
	bool asked = false;
	for (int i = 0; t && i < t->of[role].n; i++)
		asked = asked || table_server(t->of[role].table[i]);
	return asked;
}

char *tables_get_at(const struct tables *t, enum table_role role, int i, const char *key,
		    const struct socketmap_name **server, struct table_origin *origin)
{
	assert(i >= 0 && i < tables_count(t, role));
	const struct table *of = t->of[role].table[i];
	*server = table_server(of);
	return *server ? NULL : table_get(of, key, origin);
}

void tables_each(const struct tables *t, enum table_role role,
		 void (*row)(void *context, const char *key, const char *value), void *context)
{
	for (int i = 0; i < t->of[role].n; i++)
		table_each(t->of[role].table[i], row, context);
}

char *tables_get(const struct tables *t, enum table_role role, const char *key,
		 struct table_origin *origin)
{
	assert(role < TABLE_ROLES);
	char *value = NULL;
	for (int i = 0; t && !value && i < t->of[role].n; i++)
		value = table_get(t->of[role].table[i], key, origin);
	return value;
}

char *tables_any(const struct tables *t, enum table_role role, const char *except, uint64_t choice)
{
	char *value = NULL;
	for (int i = 0; t && !value && i < t->of[role].n; i++)
		value = table_any(t->of[role].table[i], except, choice);
	return value;
}

int tables_keys(const char *address, char *room, size_t size, const char *key[TABLES_KEYS_MAX])
{
	int n = 0;
	bool fits = name_key_into(address, room, size);
	const char *domain = mailaddr_domain(fits ? room : address);
	if (*address == '\0')
		key[n++] = "<>";
	else if (fits)
		key[n++] = room;
	if (*domain)
		key[n++] = domain;
	for (const char *dot = strchr(domain, '.'); dot && n < TABLES_KEYS_MAX - 1;
	     dot = strchr(dot + 1, '.'))
		key[n++] = dot;
	assert(n < TABLES_KEYS_MAX);
	key[n++] = "*";
	return n;
}

char *tables_find(const struct tables *t, enum table_role role, const char *address,
		  struct table_origin *origin)
{
	char room[MAILADDR_MAX];
	const char *key[TABLES_KEYS_MAX];
	char *value = NULL;
	if (!t || t->of[role].n == 0)
		return NULL;
	int n = tables_keys(address, room, sizeof room, key);
	/* The null sender is nobody's: "*" does not mean it. */
	for (int i = 0; !value && i < (*address ? n : 1); i++)
		value = tables_get(t, role, key[i], origin);
	return value;
}

static bool is_of(const struct table *t, const struct conf_list *files)
{
	for (int i = 0; i < files->n; i++)
		if (strcmp(files->item[i], table_file(t)) == 0)
			return true;
	return false;
}

static bool has_key(const struct table *t, const char *const *key, int n)
{
	struct table_origin origin;
	bool found = false;
	for (int i = 0; !found && i < n; i++) {
		char *value = table_get(t, key[i], &origin);
		found = value;
		free(value);
	}
	return found;
}

void tables_servers(const struct tables *t, enum table_role role, const struct conf_list *files,
		    struct conf_list *servers)
{
	for (int i = 0; t && i < t->of[role].n; i++)
		if (table_server(t->of[role].table[i]) && is_of(t->of[role].table[i], files))
			conf_list_add(servers, table_file(t->of[role].table[i]));
}

bool tables_list(const struct tables *t, enum table_role role, const struct conf_list *files,
		 const char *address)
{
	char room[MAILADDR_MAX];
	const char *key[TABLES_KEYS_MAX];
	int n = tables_keys(address, room, sizeof room, key);
	bool found = false;
	for (int i = 0; t && !found && i < t->of[role].n; i++)
		found = is_of(t->of[role].table[i], files) && has_key(t->of[role].table[i], key, n);
	return found;
}
