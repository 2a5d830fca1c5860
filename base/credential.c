/* SPDX-License-Identifier: ISC */
#include "base/credential.h"

#include "base/mailaddr.h"
#include "base/mem.h"
#include "base/refs.h"
#include "base/tables.h"
#include "base/words.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {[CREDENTIAL_PASSWORD] = "password:",
				    [CREDENTIAL_TOKEN] = "token:",
				    [CREDENTIAL_REFRESH] = "refresh:"};

static const char clear[] = "clear", unproven[] = "unauthenticated";

enum { KINDS = sizeof kinds / sizeof kinds[0], HOP_KEYS = 3 };

/* The kind of a word such as "token:/its/file"; KINDS: it is none. */
static int kind_of(const char *word, size_t len)
{
	for (int kind = 0; kind < KINDS; kind++) {
		size_t prefix = strlen(kinds[kind]);
		if (len > prefix + 1 && strncmp(word, kinds[kind], prefix) == 0 &&
		    word[prefix] == '/')
			return kind;
	}
	return KINDS;
}

bool credential_has_sender(const char *value)
{
	size_t len;
	words_next(&value, &len);
	words_next(&value, &len);
	const char *third = words_next(&value, &len);
	return kind_of(third, len) < KINDS;
}

/* The words that a row may end with; NULL: it is none of these. */
static const char *word_of(const char *word, size_t len)
{
	if (words_is(word, len, clear))
		return clear;
	return words_is(word, len, unproven) ? unproven : NULL;
}

static struct credential *make_credential(const char *login, size_t login_len, const char *secret,
					  size_t secret_len, const char *word)
{
	struct credential *c = mem_zalloc(sizeof *c);
	atomic_init(&c->refs, 1);
	assert(kind_of(secret, secret_len) < KINDS);
	c->kind = (enum credential_kind)kind_of(secret, secret_len);
	c->login = mem_strndup(login, login_len);
	size_t prefix = strlen(kinds[c->kind]);
	c->file = mem_strndup(secret + prefix, secret_len - prefix);
	c->clear = strcmp(word, clear) == 0;
	c->unproven = *word;
	c->id = mem_printf("%s %s%s %s", c->login, kinds[c->kind], c->file, word);
	return c;
}

const char *credential_parse(const char *value, struct credential **c, struct buf *why)
{
	size_t login_len, secret_len, word_len, rest_len;
	const char *login = words_next(&value, &login_len);
	const char *secret = words_next(&value, &secret_len);
	const char *third = words_next(&value, &word_len);
	words_next(&value, &rest_len);
	if (login_len == 0 || kind_of(secret, secret_len) == KINDS) {
		buf_puts(why, "must be \"NEXT-HOP [SENDER] LOGIN SECRET [unauthenticated|clear]\", "
			      "with password:/FILE, token:/FILE or refresh:/FILE for the secret");
		return secret;
	}
	const char *word = word_len == 0 ? "" : word_of(third, word_len);
	if (rest_len > 0 || !word) {
		buf_puts(why,
			 "behind the secret there may be \"unauthenticated\" or \"clear\", and "
			 "nothing else");
		return third;
	}
	if (c)
		*c = make_credential(login, login_len, secret, secret_len, word);
	return NULL;
}

/* Takes the value. hop: as it was looked up at last, its bare name. */
static struct credential *read_row(char *value, bool of_sender, const char *hop,
				   const char *next_hop)
{
	struct credential *c = NULL;
	struct buf why = {0};
	credential_parse(value, &c, &why); /* it was checked when the table was read */
	buf_fini(&why);
	free(value);
	if (!c)
		return NULL;
	char *id = c->id;
	c->of_sender = of_sender;
	c->hop = mem_strdup(hop);
	c->next_hop = mem_strdup(next_hop);
	c->id = mem_printf("%s %s", id, hop);
	free(id);
	return c;
}

static void fold_case(char *s)
{
	for (; *s; s++)
		*s = (char)tolower((unsigned char)*s);
}

/* The keys that a next hop is looked up by, most specific first; the caller's to free. */
static int hop_keys(const char *hop, char *key[HOP_KEYS])
{
	struct conf_relay r;
	int n = 0;
	if (!conf_relay_read(hop, &r)) {
		key[n++] = mem_strdup(hop);
	} else {
		bool bracketed = hop[0] == '[';
		if (r.port > 0)
			key[n++] = mem_printf(bracketed ? "[%s]:%d" : "%s:%d", r.host, r.port);
		if (bracketed)
			key[n++] = mem_printf("[%s]", r.host);
		key[n++] = mem_strdup(r.host);
	}
	assert(n > 0 && n <= HOP_KEYS);
	free(r.host);
	for (int i = 0; i < n; i++)
		fold_case(key[i]);
	return n;
}

static struct credential *find_for_sender(const struct tables *t, char *const *hop, int n,
					  const char *sender)
{
	char *value = NULL;
	struct table_origin origin;
	for (int i = 0; !value && i < n; i++) {
		char *key = sender ? mem_printf("%s %s", hop[i], sender) : mem_strdup(hop[i]);
		value = tables_get(t, TABLE_CREDENTIALS, key, &origin);
		free(key);
	}
	return value ? read_row(value, sender != NULL, hop[n - 1], hop[0]) : NULL;
}

struct credential *credential_find(const struct tables *t, const char *hop, const char *sender)
{
	char room[MAILADDR_MAX], *hops[HOP_KEYS];
	const char *key[TABLES_KEYS_MAX];
	struct credential *c = NULL;
	if (!t || tables_count(t, TABLE_CREDENTIALS) == 0)
		return NULL;
	int nhop = hop_keys(hop, hops), n = tables_keys(sender, room, sizeof room, key);
	for (int i = 0; !c && i < n - 1; i++) /* the last is "*": all senders */
		c = find_for_sender(t, hops, nhop, key[i]);
	if (!c)
		c = find_for_sender(t, hops, nhop, NULL);
	for (int i = 0; i < nhop; i++)
		free(hops[i]);
	return c;
}

struct credential *credential_ref(struct credential *c)
{
	if (c)
		refs_take(&c->refs);
	return c;
}

void credential_unref(struct credential *c)
{
	if (!c || !refs_drop(&c->refs))
		return;
	free(c->login);
	free(c->file);
	free(c->hop);
	free(c->next_hop);
	free(c->id);
	free(c);
}
