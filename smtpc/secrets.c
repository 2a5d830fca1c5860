/* SPDX-License-Identifier: ISC */
#include "smtpc/secrets.h"

#include "base/condition.h"
#include "base/mem.h"
#include "smtpc/secret_file.h"
#include "smtpc/tokens.h"

#include <stdlib.h>
#include <string.h>

struct secrets {
	struct loop *loop;
	struct tokens *tokens;
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

static void answer_ask(struct secret_ask *a, const char *secret, struct verdict *failure)
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

/* The first line of the file. */
static void answer_from_file(struct secret_ask *a)
{
	struct buf why = {0};
	char *text = secret_file_read(a->credential->file, &why);
	if (text)
		text[strcspn(text, "\r\n")] = '\0';
	if (text && !*text)
		buf_printf(&why, "%s is empty", a->credential->file);
	bool good = text && *text;
	struct verdict *failure = good ? NULL : no_secret(a->credential, buf_cstr(&why));
	condition_turn(CONDITION_secret_unreadable, !good, a->credential->file, buf_cstr(&why));
	answer_ask(a, good ? text : NULL, failure);
	verdict_unref(failure);
	secret_file_free(text);
	buf_fini(&why);
}

static void answer_with_token(struct note *question, const char *token, const char *why)
{
	struct secret_ask *a = (struct secret_ask *)question;
	struct verdict *failure = token ? NULL : no_secret(a->credential, why ? why : "none yet");
	answer_ask(a, token, failure);
	verdict_unref(failure);
}

static void receive_note(void *owner, struct note *n)
{
	struct secrets *s = owner;
	struct secret_ask *a = (struct secret_ask *)n;
	if (n->type == SECRET_SPOILED && s->tokens)
		tokens_spoiled(s->tokens, a->credential);
	if (n->type == SECRET_SPOILED || !s->tokens)
		secret_ask_free(&a);
	else if (a->credential->kind == CREDENTIAL_REFRESH)
		tokens_ask(s->tokens, a->credential, n);
	else
		answer_from_file(a);
}

struct secrets *secrets_new(const char *spool)
{
	struct secrets *s = mem_zalloc(sizeof *s);
	s->loop = loop_new("secrets", receive_note, NULL, s);
	s->tokens = tokens_new(s->loop, spool, answer_with_token);
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

static void drop_question(struct note *question)
{
	struct secret_ask *a = (struct secret_ask *)question;
	secret_ask_free(&a);
}

void secrets_free(struct secrets **sp)
{
	struct secrets *s = *sp;
	if (!s)
		return;
	loop_stop(s->loop);
	tokens_free(&s->tokens, drop_question);
	loop_free(&s->loop);
	free(s);
	*sp = NULL;
}

static void post_ask(struct secrets *s, int type, struct credential *c, struct loop *reply_to,
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
	post_ask(s, SECRET_ASK, c, reply_to, connection);
}

void secrets_spoiled(struct secrets *s, struct credential *c)
{
	post_ask(s, SECRET_SPOILED, c, NULL, 0);
}
