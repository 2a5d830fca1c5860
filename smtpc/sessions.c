/* SPDX-License-Identifier: ISC */
#include "smtpc/sessions.h"

#include "base/keyed_hash.h"
#include "base/mem.h"

#include <stdlib.h>

struct session_entry {
	UT_hash_handle hh;
	char *key;
	SSL_SESSION *session;
};

void sessions_init(struct sessions *s)
{
	s->table = NULL;
}

static void drop(struct sessions *s, struct session_entry *e)
{
	HASH_DEL(s->table, e);
	SSL_SESSION_free(e->session);
	free(e->key);
	free(e);
}

void sessions_fini(struct sessions *s)
{
	while (s->table)
		drop(s, s->table);
}

static struct session_entry *find(const struct sessions *s, const char *key)
{
	struct session_entry *e;
	HASH_FIND_STR(s->table, key, e);
	return e;
}

void sessions_drop(struct sessions *s, const char *key)
{
	struct session_entry *e = find(s, key);
	if (e)
		drop(s, e);
}

void sessions_put(struct sessions *s, const char *key, SSL_SESSION *session)
{
	sessions_drop(s, key);
	if (HASH_COUNT(s->table) >= SESSIONS_MAX)
		drop(s, s->table); /* the table keeps the order of arrival */
	struct session_entry *e = mem_zalloc(sizeof *e);
	e->key = mem_strdup(key);
	e->session = session;
	HASH_ADD_KEYPTR(hh, s->table, e->key, strlen(e->key), e);
}

SSL_SESSION *sessions_get(const struct sessions *s, const char *key)
{
	struct session_entry *e = find(s, key);
	return e ? e->session : NULL;
}
