/* SPDX-License-Identifier: ISC */
#include "cmd/local/login_try.h"

#include "base/base64.h"
#include "base/delivery.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/tls_dane.h"
#include "smtpc/smtpc.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECRET_MAX = 4096 };

struct trying {
	struct login_try *to;
	struct loop *loop;
	struct smtpc *smtpc;
	struct credential *credential;
};

/* In the words of a host, in clear or as AUTH has it. */
static bool gives_away(const char *said, const char *login, const char *secret)
{
	struct buf plain = {0}, of_plain = {0}, of_login = {0};
	buf_append(&plain, "", 1);
	buf_puts(&plain, login);
	buf_append(&plain, "", 1);
	buf_puts(&plain, secret);
	base64_encode(&of_plain, buf_data(&plain), buf_len(&plain));
	base64_encode(&of_login, secret, strlen(secret));
	bool found = strstr(said, secret) || strstr(said, buf_cstr(&of_plain)) ||
		     strstr(said, buf_cstr(&of_login));
	buf_wipe(&plain);
	buf_wipe(&of_plain);
	buf_wipe(&of_login);
	return found;
}

/* A host may repeat what it was sent. */
static char *without_secret(const struct credential *c, const char *said)
{
	char secret[SECRET_MAX] = "";
	FILE *in = fopen(c->file, "re");
	bool has = in && fgets(secret, sizeof secret, in);
	if (in)
		fclose(in);
	secret[strcspn(secret, "\r\n")] = '\0';
	bool told = has && *secret && gives_away(said, c->login, secret);
	OPENSSL_cleanse(secret, sizeof secret);
	return mem_strdup(told ? "what the host says has the password in it" : said);
}

static void tell_reply(const struct trying *t, const struct verdict *v)
{
	char *text = without_secret(t->credential, v->text);
	t->to->said = v->code > 0 ? mem_printf("%d %s", v->code, text) : mem_strdup(text);
	free(text);
}

static void on_ready(struct trying *t, struct connection_ready *ready)
{
	struct connection_close *close = mem_zalloc(sizeof *close);
	t->to->result = LOGIN_DONE;
	t->to->tls = ready->tls;
	verdict_unref(ready->choked);
	close->note.type = CONNECTION_CLOSE;
	close->connection = ready->connection;
	loop_post(smtpc_worker(t->smtpc, 0), &close->note);
	free(ready);
}

static void on_closed(struct trying *t, struct connection_open *open)
{
	if (t->to->result != LOGIN_DONE && open->login_refused)
		t->to->result = LOGIN_REFUSED;
	if (t->to->result != LOGIN_DONE && open->why)
		tell_reply(t, open->why);
	connection_open_free(&open);
	ev_break(t->loop->ev, EVBREAK_ALL);
}

static void receive_note(void *owner, struct note *note)
{
	if (note->type == CONNECTION_READY)
		on_ready(owner, (struct connection_ready *)note);
	else if (note->type == CONNECTION_CLOSED)
		on_closed(owner, (struct connection_open *)note);
	else
		free(note); /* CONNECTION_SLOW: there is no other to be tried meanwhile */
}

void login_try(struct login_try *to, struct conf *conf, struct credential *c,
	       const struct login_host *h)
{
	struct trying t = {.to = to, .smtpc = smtpc_new(conf), .credential = c};
	*to = (struct login_try){.result = LOGIN_FAILED};
	log_set_level(LOG_LEVEL_NONE); /* what there is to say is in the result */
	t.loop = loop_new("login", receive_note, NULL, &t);
	struct connection_open *open =
		connection_open_new(1, conf, h->transport, h->name, h->address);
	open->reply_to = t.loop;
	open->tls = mem_strdup(h->tls);
	open->dane = tls_dane_ref(h->dane);
	open->credential = credential_ref(c);
	smtpc_start(t.smtpc);
	loop_post(smtpc_worker(t.smtpc, 0), &open->note);
	ev_run(t.loop->ev, 0);
	smtpc_stop(t.smtpc);
	smtpc_free(&t.smtpc);
	loop_free(&t.loop);
}

void login_try_fini(struct login_try *l)
{
	free(l->said);
}
