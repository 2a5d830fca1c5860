/* SPDX-License-Identifier: ISC */
#include "smtpc/secrets.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/https.h"
#include "base/keyed_hash.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "smtpc/token.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FILE_MAX = 64 << 10,
	RETRY_FIRST_MS = 1000,
	RETRY_MOST_MS = 300000,
	FETCH_MS = 30000,
};

/* A token that is fetched. */
struct kept {
	UT_hash_handle hh;
	struct secrets *secrets;
	struct credential *credential;
	struct token_source source;
	char *access,
		*refresh; /* or NULL; refresh: what the endpoint gave in the place of the file's */
	int64_t ends_ms, renew_ms;   /* steady clock */
	int64_t retry_ms;	     /* steady clock: not asked before; 0: any time */
	int64_t wait_ms;	     /* how long that was put off */
	struct verdict *failure;     /* of the last attempt, or NULL */
	struct https_request *fetch; /* under way, or NULL */
	struct note *waiting;	     /* struct secret_ask */
};

struct secrets {
	struct loop *loop;
	struct https *https;
	struct kept *kept; /* by the id of the credential */
};

void secret_ask_free(struct secret_ask **ap)
{
	struct secret_ask *a = *ap;
	if (!a)
		return;
	credential_unref(a->credential);
	verdict_unref(a->failure);
	mem_free_secret(a->secret);
	free(a);
	*ap = NULL;
}

static void answer(struct secret_ask *a, const char *secret, struct verdict *failure)
{
	a->secret = secret ? mem_strdup(secret) : NULL;
	a->failure = secret ? NULL : verdict_ref(failure);
	a->note.type = SECRET_ANSWER;
	loop_post(a->reply_to, &a->note);
}

static struct verdict *no_secret(const struct credential *c, const char *why)
{
	return verdict_printf(VERDICT_DEFERRED, 0, "4.7.0", NULL, "no %s for %s: %s",
			      c->kind == CREDENTIAL_PASSWORD ? "password" : "token", c->login, why);
}

/* The whole of it, to be wiped; NULL: why. */
static char *read_file(const char *path, struct buf *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char *text = fd >= 0 ? mem_zalloc(FILE_MAX + 1) : NULL;
	ssize_t n = fd >= 0 ? read(fd, text, FILE_MAX + 1) : -1;
	if (n < 0)
		buf_printf(why, "%s: %s", path, strerror(errno));
	else if (n > FILE_MAX)
		buf_printf(why, "%s is larger than 64k", path);
	if (fd >= 0)
		close(fd);
	if (n >= 0 && n <= FILE_MAX) {
		text[n] = '\0';
		return text;
	}
	if (text)
		OPENSSL_cleanse(text, FILE_MAX + 1);
	free(text);
	return NULL;
}

static void free_file(char *text)
{
	if (text)
		OPENSSL_cleanse(text, FILE_MAX + 1);
	free(text);
}

/* The first line of the file. */
static void answer_from_file(struct secret_ask *a)
{
	struct buf why = {0};
	char *text = read_file(a->credential->file, &why);
	if (text)
		text[strcspn(text, "\r\n")] = '\0';
	if (text && !*text)
		buf_printf(&why, "%s is empty", a->credential->file);
	bool good = text && *text;
	struct verdict *failure = good ? NULL : no_secret(a->credential, buf_cstr(&why));
	condition_turn(CONDITION_secret_unreadable, !good, a->credential->file, buf_cstr(&why));
	answer(a, good ? text : NULL, failure);
	verdict_unref(failure);
	free_file(text);
	buf_fini(&why);
}

static struct kept *kept_of(struct secrets *s, struct credential *c)
{
	struct kept *k;
	HASH_FIND_STR(s->kept, c->id, k);
	if (k)
		return k;
	k = mem_zalloc(sizeof *k);
	k->secrets = s;
	k->credential = credential_ref(c);
	HASH_ADD_KEYPTR(hh, s->kept, k->credential->id, strlen(k->credential->id), k);
	return k;
}

static void forget_access(struct kept *k)
{
	mem_free_secret(k->access);
	k->access = NULL;
	k->ends_ms = k->renew_ms = 0;
}

static void answer_all(struct kept *k)
{
	while (k->waiting) {
		struct secret_ask *a = (struct secret_ask *)k->waiting;
		k->waiting = a->note.next;
		answer(a, k->access, k->failure);
	}
}

/* The next attempt is not before some time, and this is said once until one succeeds. */
static void failed(struct kept *k, const char *why)
{
	bool news = !k->failure;
	verdict_unref(k->failure);
	k->failure = no_secret(k->credential, why);
	condition_set(CONDITION_token_missing, k->credential->login, why);
	if (news)
		log_event(LOG_LEVEL_WARNING, "login", "login", k->credential->login, "mechanism",
			  "token", "result", "no_token", "reason", why, NULL);
	k->wait_ms = k->wait_ms == 0 ? RETRY_FIRST_MS : k->wait_ms * 2;
	if (k->wait_ms > RETRY_MOST_MS)
		k->wait_ms = RETRY_MOST_MS;
	k->retry_ms = clock_steady_ms() + k->wait_ms;
}

static void succeeded(struct kept *k, struct token_answer *a)
{
	int64_t now_ms = clock_steady_ms();
	if (k->failure)
		log_event(LOG_LEVEL_INFO, "login", "login", k->credential->login, "mechanism",
			  "token", "result", "ok", NULL);
	verdict_unref(k->failure);
	k->failure = NULL;
	condition_clear(CONDITION_token_missing, k->credential->login);
	k->retry_ms = k->wait_ms = 0;
	forget_access(k);
	k->access = a->access;
	a->access = NULL;
	if (a->refresh) {
		mem_free_secret(k->refresh);
		k->refresh = a->refresh;
		a->refresh = NULL;
	}
	k->ends_ms = now_ms + a->lifetime_ms;
	k->renew_ms = k->ends_ms - a->lifetime_ms / 10;
}

static void on_fetched(void *owner, const struct https_answer *h)
{
	struct kept *k = owner;
	struct buf why = {0};
	struct token_answer a = {0};
	k->fetch = NULL;
	buf_printf(&why, "%s: ", k->source.endpoint);
	if (h->error)
		buf_puts(&why, h->error);
	if (!h->error && token_answer_read(&a, h->status, h->body, h->len, &why))
		succeeded(k, &a);
	else
		failed(k, buf_cstr(&why));
	token_answer_fini(&a);
	token_source_fini(&k->source);
	buf_fini(&why);
	if (!k->access || clock_steady_ms() >= k->ends_ms)
		forget_access(k);
	answer_all(k);
}

static bool read_source(struct kept *k, struct buf *why)
{
	char *text = read_file(k->credential->file, why);
	bool good = text && token_source_read(&k->source, text, why);
	if (text && !good) {
		char *what = mem_strdup(buf_cstr(why));
		buf_clear(why);
		buf_printf(why, "%s: %s", k->credential->file, what);
		free(what);
	}
	condition_turn(CONDITION_secret_unreadable, !text, k->credential->file, buf_cstr(why));
	free_file(text);
	return good;
}

static void fetch(struct kept *k)
{
	struct buf why = {0}, form = {0};
	if (!read_source(k, &why)) {
		token_source_fini(&k->source);
		failed(k, buf_cstr(&why));
		answer_all(k);
		buf_fini(&why);
		return;
	}
	if (k->refresh && k->source.refresh_token) {
		mem_free_secret(k->source.refresh_token);
		k->source.refresh_token = mem_strdup(k->refresh);
	}
	buf_reserve(&form, 16 << 10);
	token_source_form(&k->source, &form);
	struct https_order order = {.url = k->source.endpoint,
				    .ca = k->source.ca,
				    .body = &form,
				    .timeout_ms = FETCH_MS};
	k->fetch = https_begin(k->secrets->https, &order, on_fetched, k);
	buf_wipe(&form);
}

static void answer_from_endpoint(struct secrets *s, struct secret_ask *a)
{
	struct kept *k = kept_of(s, a->credential);
	int64_t now_ms = clock_steady_ms();
	bool may_ask = !k->fetch && now_ms >= k->retry_ms;
	bool good = k->access && now_ms < k->ends_ms;
	if (good || (!may_ask && !k->fetch)) {
		answer(a, good ? k->access : NULL, k->failure);
	} else {
		a->note.next = k->waiting;
		k->waiting = &a->note;
	}
	if (may_ask && (!good || now_ms >= k->renew_ms))
		fetch(k);
}

static void spoiled(struct secrets *s, const struct credential *c)
{
	struct kept *k;
	HASH_FIND_STR(s->kept, c->id, k);
	if (k)
		forget_access(k);
}

static void receive(void *owner, struct note *n)
{
	struct secrets *s = owner;
	struct secret_ask *a = (struct secret_ask *)n;
	if (n->type == SECRET_SPOILED)
		spoiled(s, a->credential);
	if (n->type == SECRET_SPOILED || !s->https)
		secret_ask_free(&a);
	else if (a->credential->kind == CREDENTIAL_REFRESH)
		answer_from_endpoint(s, a);
	else
		answer_from_file(a);
}

struct secrets *secrets_new(void)
{
	struct secrets *s = mem_zalloc(sizeof *s);
	s->loop = loop_new("secrets", receive, NULL, s);
	s->https = https_new(s->loop);
	return s;
}

void secrets_start(struct secrets *s)
{
	loop_start(s->loop);
}

void secrets_stop(struct secrets *s)
{
	loop_stop(s->loop);
}

static void forget(struct kept *k)
{
	https_drop(&k->fetch);
	while (k->waiting) {
		struct secret_ask *a = (struct secret_ask *)k->waiting;
		k->waiting = a->note.next;
		secret_ask_free(&a);
	}
	HASH_DEL(k->secrets->kept, k);
	forget_access(k);
	mem_free_secret(k->refresh);
	token_source_fini(&k->source);
	verdict_unref(k->failure);
	credential_unref(k->credential);
	free(k);
}

void secrets_free(struct secrets **sp)
{
	struct secrets *s = *sp;
	if (!s)
		return;
	loop_stop(s->loop);
	while (s->kept)
		forget(s->kept);
	https_free(&s->https);
	loop_free(&s->loop);
	free(s);
	*sp = NULL;
}

static void post(struct secrets *s, int type, struct credential *c, struct loop *reply_to,
		 uint64_t connection)
{
	struct secret_ask *a = mem_zalloc(sizeof *a);
	a->note.type = type;
	a->reply_to = reply_to;
	a->connection = connection;
	a->credential = credential_ref(c);
	loop_post(s->loop, &a->note);
}

void secrets_ask(struct secrets *s, struct credential *c, struct loop *reply_to,
		 uint64_t connection)
{
	post(s, SECRET_ASK, c, reply_to, connection);
}

void secrets_spoiled(struct secrets *s, struct credential *c)
{
	post(s, SECRET_SPOILED, c, NULL, 0);
}
