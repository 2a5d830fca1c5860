/* SPDX-License-Identifier: ISC */
#include "base/users.h"

#include "base/mem.h"

#include <assert.h>
#include <ctype.h>
#include <gsasl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A byte that would read as something else in a table, in the log, in a header or on a command line. */
static const char *bad_place(const char *login)
{
	if (strchr("@-.", login[0]))
		return login;
	for (const char *c = login; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 127 || strchr("\"#:,;<>()[]*", *c))
			return c;
	return NULL;
}

static const char form[] =
	"a login may not begin with @, - or a dot, nor have blanks, control characters, "
	"or any of \" \\ # : , ; < > ( ) [ ] *";

static bool say_why(struct buf *why, const char *text)
{
	if (why)
		buf_puts(why, text);
	return false;
}

bool users_folded(const char *text, char login[USERS_LOGIN_MAX + 1])
{
	char *prepared = NULL;
	bool good = strlen(text) <= USERS_LOGIN_MAX &&
		    gsasl_saslprep(text, 0, &prepared, NULL) == GSASL_OK &&
		    strlen(prepared) <= USERS_LOGIN_MAX && *prepared;
	for (size_t i = 0; good && i <= strlen(prepared); i++)
		login[i] = (char)tolower((unsigned char)prepared[i]);
	gsasl_free(prepared);
	return good;
}

bool users_named(const char *text, char login[USERS_LOGIN_MAX + 1], struct buf *why)
{
	if (!*text)
		return say_why(why, "a login must not be empty");
	return users_folded(text, login) ||
	       say_why(why, "that login is too long, no UTF-8, or has characters that SASLprep "
			    "forbids");
}

bool users_in_table(const char *text, char login[USERS_LOGIN_MAX + 1], struct buf *why)
{
	if (!users_named(text, login, why))
		return false;
	return !bad_place(login) || say_why(why, form);
}

bool users_login(const char *text, char login[USERS_LOGIN_MAX + 1], struct buf *why)
{
	if (!users_in_table(text, login, why))
		return false;
	return !strchr(login, '\\') || say_why(why, form);
}

static bool is_plain_ascii(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
			return false;
	return true;
}

/* SASLprep leaves printable ASCII as it is; the library's copies of the others are not wiped. */
char *users_password(const char *text, struct buf *why)
{
	char *prepared = NULL, *password = NULL;
	if (is_plain_ascii(text))
		password = mem_strdup(text);
	else if (gsasl_saslprep(text, 0, &prepared, NULL) == GSASL_OK)
		password = mem_strdup(prepared);
	mem_free_secret(prepared);
	if (!password)
		say_why(why, "that password is no UTF-8, or has characters that SASLprep forbids");
	else if (!*password)
		say_why(why, "a password must not be empty");
	else if (strlen(password) > USERS_PASSWORD_MAX)
		say_why(why, "that password is too long");
	else
		return password;
	mem_free_secret(password);
	return NULL;
}

/* The key of a file that has none: of this process. */
static struct user_value own;

static void make_own(void)
{
	if (!user_value_make_key(&own))
		abort();
}

static bool get_user(const struct tables *t, const char *login, struct user_value *v)
{
	struct table_origin origin;
	struct buf why = {0};
	char *text = tables_get(t, TABLE_USERS, login, &origin);
	bool found = text && !user_value_parse(text, v, &why);
	mem_free_secret(text);
	buf_fini(&why);
	return found;
}

static void get_key(const struct tables *t, unsigned char key[USER_KEY_MAX])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct user_value nobody = {.has_key = false};
	get_user(t, USERS_NOBODY, &nobody);
	pthread_once(&once, make_own);
	memcpy(key, nobody.has_key ? nobody.key : own.key, USER_KEY_MAX);
	user_value_fini(&nobody);
}

/* A seed that is made up of a name: the same each time. */
static void make_seed(const struct tables *t, const char *login, enum user_hash h,
		      unsigned char seed[USER_KEY_MAX])
{
	unsigned char key[USER_KEY_MAX];
	char *text = mem_printf("%d %s", (int)h, login);
	get_key(t, key);
	if (!HMAC(EVP_sha256(), key, sizeof key, (const unsigned char *)text, strlen(text), seed,
		  NULL))
		abort();
	explicit_bzero(key, sizeof key);
	free(text);
}

/* Some row, chosen by the name. */
static void get_other(const struct tables *t, const char *login, struct user_value *v)
{
	unsigned char seed[USER_KEY_MAX];
	uint64_t choice;
	struct buf why = {0};
	make_seed(t, login, USER_HASHES, seed);
	memcpy(&choice, seed, sizeof choice);
	char *row = tables_any(t, TABLE_USERS, USERS_NOBODY, choice);
	if (!row || user_value_parse(row, v, &why))
		*v = (struct user_value){.scram[USER_SHA256] = {.iterations = USER_ITERATIONS,
								.salt_bytes = USER_SALT}};
	mem_free_secret(row);
	buf_fini(&why);
}

bool users_find(const struct tables *t, const char *login, struct user_value *v)
{
	if (get_user(t, login, v))
		return true;
	get_other(t, login, v);
	return false;
}

bool users_scram(const struct tables *t, const char *login, enum user_hash h, struct user_scram *s)
{
	assert(h < USER_HASHES);
	unsigned char seed[USER_KEY_MAX];
	struct user_value v, other;
	bool found = users_find(t, login, &v) && v.scram[h].iterations;
	/* Both are looked for each time. */
	get_other(t, login, &other);
	make_seed(t, login, h, seed);
	if (found) {
		*s = v.scram[h];
	} else {
		int iterations = other.scram[h].iterations;
		*s = (struct user_scram){.iterations = iterations ? iterations : USER_ITERATIONS,
					 .salt_bytes = USER_SALT};
		memcpy(s->salt, seed, USER_SALT);
		memcpy(s->stored_key, seed, USER_KEY_MAX);
		memcpy(s->server_key, seed, USER_KEY_MAX);
	}
	/* None by which a client could tell that there is no such login. */
	assert(s->iterations > 0 && s->salt_bytes > 0);
	user_value_fini(&v);
	user_value_fini(&other);
	explicit_bzero(seed, sizeof seed);
	return found;
}

bool users_listed(const char *logins, const char *login, struct buf *why)
{
	char word[USERS_LOGIN_MAX + 1], one[USERS_LOGIN_MAX + 1];
	for (const char *at = logins + strspn(logins, ", \t"); *at; at += strspn(at, ", \t")) {
		size_t len = strcspn(at, ", \t");
		bool fits = len < sizeof word;
		snprintf(word, sizeof word, "%.*s", (int)len, at);
		bool any = strcmp(word, "*") == 0;
		bool good = any || (fits && users_in_table(word, one, why));
		if (!login && !good)
			return false;
		if (login && good && (any || strcmp(one, login) == 0))
			return true;
		at += len;
	}
	return !login;
}

bool users_may_send(const struct conf *c, const char *login, const char *address)
{
	struct table_origin origin;
	char *logins = tables_find(c->tables, TABLE_SENDER_LOGINS, address, &origin);
	bool listed = logins && users_listed(logins, login, NULL);
	free(logins);
	return listed;
}
