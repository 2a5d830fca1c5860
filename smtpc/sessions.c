/* SPDX-License-Identifier: ISC */
#include "smtpc/sessions.h"

#include "base/keyed_hash.h"
#include "base/mem.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

struct session_entry {
	UT_hash_handle hh;
	char *key;
	int n;
	SSL_SESSION *kept[SESSIONS_OF_KEY_MAX]; /* oldest first */
};

void sessions_init(struct sessions *s)
{
	s->table = NULL;
}

static void drop_session(struct sessions *s, struct session_entry *e)
{
	HASH_DEL(s->table, e);
	while (e->n > 0)
		SSL_SESSION_free(e->kept[--e->n]);
	free(e->key);
	free(e);
}

void sessions_fini(struct sessions *s)
{
	while (s->table)
		drop_session(s, s->table);
}

static struct session_entry *find_session(const struct sessions *s, const char *key)
{
	struct session_entry *e;
	HASH_FIND_STR(s->table, key, e);
	return e;
}

void sessions_drop(struct sessions *s, const char *key)
{
	struct session_entry *e = find_session(s, key);
	if (e)
		drop_session(s, e);
}

static struct session_entry *make_entry(struct sessions *s, const char *key)
{
	if (HASH_COUNT(s->table) >= SESSIONS_KEYS_MAX)
		drop_session(s, s->table); /* the table keeps the order of arrival */
	struct session_entry *e = mem_zalloc(sizeof *e);
	e->key = mem_strdup(key);
	HASH_ADD_KEYPTR(hh, s->table, e->key, strlen(e->key), e);
	return e;
}

static bool for_all(const SSL_SESSION *session)
{
	return SSL_SESSION_get_protocol_version(session) < TLS1_3_VERSION;
}

/* The oldest of TLS 1.3, or all of what one new session takes the place of. */
static void make_room(struct session_entry *e, const SSL_SESSION *newest)
{
	int gone = for_all(newest) ? e->n : e->n == SESSIONS_OF_KEY_MAX;
	for (int i = 0; i < gone; i++)
		SSL_SESSION_free(e->kept[i]);
	e->n -= gone;
	memmove(e->kept, e->kept + gone, (size_t)e->n * sizeof *e->kept);
}

void sessions_put(struct sessions *s, const char *key, SSL_SESSION *session)
{
	struct session_entry *e = find_session(s, key);
	assert(session);
	if (!e)
		e = make_entry(s, key);
	make_room(e, session);
	assert(e->n < SESSIONS_OF_KEY_MAX);
	e->kept[e->n++] = session;
}

SSL_SESSION *sessions_take(struct sessions *s, const char *key)
{
	struct session_entry *e = find_session(s, key);
	while (e && e->n > 0) {
		SSL_SESSION *newest = e->kept[e->n - 1];
		bool good = SSL_SESSION_is_resumable(newest);
		if (good && for_all(newest) && SSL_SESSION_up_ref(newest) == 1)
			return newest;
		assert(e->n > 0);
		e->n--;
		if (good)
			return newest;
		SSL_SESSION_free(newest);
	}
	return NULL;
}
