/* SPDX-License-Identifier: ISC */
#include "smtpc/tokens.h"

#include "base/clock.h"
#include "base/condition.h"
#include "base/https.h"
#include "base/keyed_hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "smtpc/secret_file.h"
#include "smtpc/token_store.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	RETRY_FIRST_MS = 1000,
	RETRY_MOST_MS = 300000,
	SAVE_AGAIN_MS = 5000,
	FETCH_MS = 30000,
};

/* Of one file. */
struct kept {
	UT_hash_handle hh;
	struct tokens *all;
	struct credential *credential; /* of the first who asked */
	struct token_source source;
	struct token_grant grant; /* of the source */
	bool second;		  /* what is under way is with grant.before */
	bool unsaved;		  /* the grant is newer than what is on the disk */
	struct timer save;
	char *access;		     /* or NULL */
	int64_t ends_ms, renew_ms;   /* steady clock */
	int64_t retry_ms;	     /* steady clock: not asked before; 0: any time */
	int64_t wait_ms;	     /* how long that was put off */
	char *why;		     /* of the last attempt, or NULL */
	struct token_stamp failed;   /* how the files were then */
	struct https_request *fetch; /* under way, or NULL */
	int lock;		     /* while it is; or -1 */
	struct note *waiting;
};

struct tokens {
	struct loop *loop;
	char *spool;
	struct https *https;
	void (*answered)(struct note *, const char *token, const char *why);
	struct kept *kept; /* by file */
};

static void try_to_save(struct kept *k)
{
	struct buf why = {0};
	k->unsaved =
		!token_store_write(k->all->spool, k->credential->file, &k->source, &k->grant, &why);
	condition_turn(CONDITION_token_unsaved, k->unsaved, k->credential->file, buf_cstr(&why));
	if (k->unsaved)
		loop_timer_in(k->all->loop, &k->save, SAVE_AGAIN_MS);
	buf_fini(&why);
}

static void save_again(void *owner)
{
	struct kept *k = owner;
	if (k->unsaved)
		try_to_save(k);
}

static struct kept *kept_of(struct tokens *t, struct credential *c)
{
	struct kept *k;
	HASH_FIND_STR(t->kept, c->file, k);
	if (k)
		return k;
	k = mem_zalloc(sizeof *k);
	k->all = t;
	k->lock = -1;
	k->credential = credential_ref(c);
	timer_init(&k->save, save_again, k);
	HASH_ADD_KEYPTR(hh, t->kept, k->credential->file, strlen(k->credential->file), k);
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
		struct note *question = k->waiting;
		k->waiting = question->next;
		k->all->answered(question, k->access, k->why);
	}
}

static bool has_token(const struct kept *k)
{
	return k->access && clock_steady_ms() < k->ends_ms;
}

/* The next attempt is not before some time, and this is said once until one succeeds. One that was to be renewed holds for a
 * while: no mail waits yet. */
static void note_failure(struct kept *k, const char *why)
{
	if (!k->why)
		log_event(LOG_LEVEL_WARNING, "login", "login", k->credential->login, "mechanism",
			  "token", "result", "no_token", "reason", why, NULL);
	free(k->why);
	k->why = mem_strdup(why);
	if (!has_token(k))
		condition_set(CONDITION_token_missing, k->credential->login, why);
	k->wait_ms = k->wait_ms == 0 ? RETRY_FIRST_MS : k->wait_ms * 2;
	if (k->wait_ms > RETRY_MOST_MS)
		k->wait_ms = RETRY_MOST_MS;
	k->retry_ms = clock_steady_ms() + k->wait_ms;
	k->failed = token_store_stamp(k->all->spool, k->credential->file);
}

/* With this token it was. What is left to try after a crash is kept until the newest has proved good. */
static void take_grant(struct kept *k, struct token_answer *a)
{
	char *used = k->second ? k->grant.before : k->grant.newest;
	if (!used)
		return; /* client_credentials: nothing to be renewed */
	bool turned = a->refresh && strcmp(a->refresh, used) != 0;
	if (!turned && !k->grant.before)
		return;
	struct token_grant now = {.newest = turned ? a->refresh : mem_strdup(used),
				  .before = turned ? mem_strdup(used) : NULL};
	if (turned)
		a->refresh = NULL;
	token_grant_fini(&k->grant);
	k->grant = now;
	try_to_save(k);
}

static void note_success(struct kept *k, struct token_answer *a)
{
	int64_t now_ms = clock_steady_ms();
	take_grant(k, a);
	if (k->why)
		log_event(LOG_LEVEL_INFO, "login", "login", k->credential->login, "mechanism",
			  "token", "result", "ok", NULL);
	free(k->why);
	k->why = NULL;
	condition_clear(CONDITION_token_missing, k->credential->login);
	k->retry_ms = k->wait_ms = 0;
	forget_access(k);
	k->access = a->access;
	a->access = NULL;
	k->ends_ms = now_ms + a->lifetime_ms;
	k->renew_ms = k->ends_ms - a->lifetime_ms / 10;
}

static void end_fetch(struct kept *k)
{
	if (k->lock >= 0)
		close(k->lock);
	k->lock = -1;
	if (!has_token(k))
		forget_access(k);
	answer_all(k);
}

static void ask_endpoint(struct kept *k);

static void on_fetched(void *owner, const struct https_answer *h)
{
	struct kept *k = owner;
	struct buf why = {0};
	struct token_answer a = {0};
	assert(k->fetch);
	k->fetch = NULL;
	buf_printf(&why, "%s: ", k->source.endpoint);
	if (h->error)
		buf_puts(&why, h->error);
	bool good = !h->error && token_answer_read(&a, h->status, h->body, h->len, &why);
	bool spent = !good && a.error == TOKEN_ERROR_GRANT;
	if (spent && !k->second && k->grant.before) {
		k->second = true;
		ask_endpoint(k);
	} else {
		if (good)
			note_success(k, &a);
		else
			note_failure(k, buf_cstr(&why));
		end_fetch(k);
	}
	token_answer_fini(&a);
	buf_fini(&why);
}

static void ask_endpoint(struct kept *k)
{
	struct buf form = {0};
	assert(!k->fetch);
	buf_reserve(&form, 16 << 10);
	token_source_form(&k->source, k->second ? k->grant.before : k->grant.newest, &form);
	struct https_order order = {.url = k->source.endpoint,
				    .ca = k->source.ca,
				    .body = &form,
				    .timeout_ms = FETCH_MS};
	k->fetch = https_begin(k->all->https, &order, on_fetched, k);
	buf_wipe(&form);
}

static bool same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_grant(const struct token_source *a, const struct token_source *b)
{
	return a->endpoint && same_text(a->endpoint, b->endpoint) &&
	       same_text(a->client_id, b->client_id) &&
	       same_text(a->refresh_token, b->refresh_token);
}

/* The file's grant wins, where it is another than it was; else the one that the endpoint gave last. */
static void choose_grant(struct kept *k, struct token_source *said)
{
	struct buf why = {0};
	const char *file = k->credential->file;
	bool ours = k->unsaved && same_grant(&k->source, said);
	token_source_fini(&k->source);
	k->source = *said;
	*said = (struct token_source){0};
	if (ours)
		return;
	k->unsaved = false;
	token_grant_fini(&k->grant);
	if (!token_store_read(k->all->spool, file, &k->source, &k->grant, &why))
		k->grant.newest =
			k->source.refresh_token ? mem_strdup(k->source.refresh_token) : NULL;
	condition_turn(CONDITION_token_unsaved, buf_len(&why) > 0, file, buf_cstr(&why));
	buf_fini(&why);
}

static bool read_source(struct kept *k, struct buf *why)
{
	struct token_source said = {0};
	const char *file = k->credential->file;
	char *text = secret_file_read(file, why);
	struct buf wrong = {0};
	bool good = text && token_source_read(&said, text, &wrong);
	if (text && !good)
		buf_printf(why, "%s: %s", file, buf_cstr(&wrong));
	condition_turn(CONDITION_secret_unreadable, !text, file, buf_cstr(why));
	if (good)
		choose_grant(k, &said);
	token_source_fini(&said);
	secret_file_free(text);
	buf_fini(&wrong);
	return good;
}

static void fetch_token(struct kept *k)
{
	struct buf why = {0};
	assert(k->lock < 0 && !k->fetch);
	k->second = false;
	k->lock = token_store_lock(k->credential->file, false);
	if (k->lock < 0 && errno == EWOULDBLOCK)
		buf_printf(&why, "%s: another process fetches one", k->credential->file);
	else if (read_source(k, &why))
		ask_endpoint(k);
	if (buf_len(&why) > 0) {
		note_failure(k, buf_cstr(&why));
		end_fetch(k);
	}
	buf_fini(&why);
}

static bool may_fetch(const struct kept *k, int64_t now_ms)
{
	if (k->fetch)
		return false;
	if (now_ms >= k->retry_ms)
		return true;
	struct token_stamp now = token_store_stamp(k->all->spool, k->credential->file);
	return !token_stamp_same(&now, &k->failed);
}

void tokens_ask(struct tokens *t, struct credential *c, struct note *question)
{
	struct kept *k = kept_of(t, c);
	int64_t now_ms = clock_steady_ms();
	bool good = has_token(k);
	bool wanted = !good || now_ms >= k->renew_ms;
	bool may = wanted && may_fetch(k, now_ms);
	if (!good && !may && !k->fetch)
		condition_set(CONDITION_token_missing, c->login, k->why);
	if (good || (!may && !k->fetch)) {
		t->answered(question, good ? k->access : NULL, k->why);
	} else {
		question->next = k->waiting;
		k->waiting = question;
	}
	if (may)
		fetch_token(k);
}

void tokens_spoiled(struct tokens *t, const struct credential *c)
{
	struct kept *k;
	HASH_FIND_STR(t->kept, c->file, k);
	if (k)
		forget_access(k);
}

struct tokens *tokens_new(struct loop *loop, const char *spool,
			  void (*answered)(struct note *, const char *, const char *))
{
	struct tokens *t = mem_zalloc(sizeof *t);
	t->loop = loop;
	t->spool = mem_strdup(spool);
	t->answered = answered;
	t->https = https_new(loop);
	return t;
}

static void forget_kept(struct kept *k, void (*drop)(struct note *))
{
	https_drop(&k->fetch);
	if (k->lock >= 0)
		close(k->lock);
	while (k->waiting) {
		struct note *question = k->waiting;
		k->waiting = question->next;
		drop(question);
	}
	if (k->unsaved)
		try_to_save(k); /* the last time that there is */
	timer_stop(&k->all->loop->timers, &k->save);
	HASH_DEL(k->all->kept, k);
	forget_access(k);
	token_grant_fini(&k->grant);
	token_source_fini(&k->source);
	free(k->why);
	credential_unref(k->credential);
	free(k);
}

void tokens_free(struct tokens **tp, void (*drop)(struct note *))
{
	struct tokens *t = *tp;
	if (!t)
		return;
	while (t->kept)
		forget_kept(t->kept, drop);
	https_free(&t->https);
	free(t->spool);
	free(t);
	*tp = NULL;
}
