/* SPDX-License-Identifier: ISC */
#include "cmd/control/verify_job.h"

#include "base/log.h"
#include "base/mailaddr.h"
#include "base/magic.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/text/json_put.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 30000, ASKING_MAGIC = 0xa5c1b001 };

/* A request that waits for its answer; the question's owner until that is answered. */
struct asking {
	unsigned magic;
	struct request *request;
	struct loop *loop;
	struct verify *question; /* qmgr's until it is answered; nothing but its owner is touched */
	char *address;
	bool json;
	struct timer late;
};

static const struct {
	const char *word, *sentence;
	int status;
} results[] = {
	[VERIFY_TAKES] = {"taken", "the next hop takes it", STATUS_DONE},
	[VERIFY_REFUSES] = {"refused", "the next hop does not take it", STATUS_REFUSED},
	[VERIFY_UNLISTED] = {"unknown", "that cannot be said now", STATUS_UNREACHABLE},
	[VERIFY_UNKNOWN] = {"unknown", "that cannot be said now", STATUS_UNREACHABLE},
};

/* Nobody is asked where mail is discarded, or too many are already. */
static void put_reply(struct buf *to, const struct verify *ask)
{
	const struct verdict *v = ask->verdict;
	if (!v)
		buf_puts(to, ask->result == VERIFY_TAKES
				     ? "nobody was asked, since its route discards mail"
				     : "too many recipients are being asked about");
	else if (v->code)
		buf_printf(to, "%d %s", v->code, v->text);
	else
		buf_puts(to, v->text);
}

static void put_line(struct buf *to, const struct verify *v)
{
	const struct verdict *said = v->verdict;
	bool asked = said || v->result != VERIFY_TAKES;
	buf_printf(to, "%s: %s: ", v->address, asked ? results[v->result].sentence : "it is taken");
	if (said && said->code && *said->host)
		buf_printf(to, "%s said ", said->host);
	put_reply(to, v);
	buf_puts(to, "\n");
}

static void put_json(struct buf *to, const struct verify *v)
{
	const struct verdict *said = v->verdict;
	struct buf reply = {0};
	put_reply(&reply, v);
	buf_puts(to, "{");
	json_put_text(to, "address", v->address);
	json_put_text(to, "result", results[v->result].word);
	json_put_said(to, "host", said ? said->host : "");
	json_put_code(to, said ? said->code : 0);
	json_put_said(to, "dsn", said ? said->dsn : "");
	json_put_text(to, "reply", buf_cstr(&reply));
	json_put_line(to);
	buf_fini(&reply);
}

static void asking_free(struct asking *a)
{
	timer_stop(&a->loop->timers, &a->late);
	magic_clear(a);
	free(a->address);
	free(a);
}

/* The question goes on without whoever asked. */
static void on_client_gone(struct request *r)
{
	struct asking *a = r->job;
	magic_check(a, ASKING_MAGIC);
	assert(a->question->owner == a);
	a->question->owner = NULL;
	asking_free(a);
}

static void say_answer(const struct asking *a, const struct verify *v)
{
	assert((size_t)v->result < sizeof results / sizeof *results && results[v->result].word);
	struct buf out = {0};
	(a->json ? put_json : put_line)(&out, v);
	control_say(a->request, buf_data(&out), buf_len(&out));
	control_finish(a->request, results[v->result].status);
	buf_fini(&out);
}

/* Behind a rate, or at a host that does not answer, its turn may be hours away. */
static void on_late(void *owner)
{
	struct asking *a = owner;
	magic_check(a, ASKING_MAGIC);
	struct verify none = {.address = a->address, .result = VERIFY_UNKNOWN};
	none.verdict = verdict_printf(VERDICT_DEFERRED, 0, "4.4.7", "",
				      "no answer within %d s; \"sluice explain %s\" says what mail "
				      "for it waits for",
				      PATIENCE_MS / 1000, strrchr(a->address, '@') + 1);
	assert(a->question->owner == a);
	a->question->owner = NULL;
	say_answer(a, &none);
	verdict_unref(none.verdict);
	asking_free(a);
}

static bool parse_address(const char *text, struct mailaddr *a, bool empty)
{
	if (!*text)
		return empty;
	return mailaddr_mailbox(text, strlen(text), true, a) == MAILADDR_OK && a->text[a->at];
}

void verify_job_start(struct request *r, struct loop *loop, struct loop *qmgr)
{
	struct mailaddr to = {0}, from = {0};
	bool json = r->argc == 5 && strcmp(r->argv[4], "--json") == 0;
	bool null = r->argc > 3 && strcmp(r->argv[3], "<>") == 0;
	if (r->argc < 4 || (r->argc > 4 && !json) || !parse_address(r->argv[1], &to, false) ||
	    (!null && !parse_address(r->argv[3], &from, true))) {
		control_complain(r, "sluice: verify: that is no address\n");
		control_finish(r, STATUS_USAGE);
		return;
	}
	const char *sender = null ? "" : *r->argv[3] ? from.text : NULL;
	struct verify *v = verify_new(to.text, sender, loop);
	v->fresh = true;
	v->listed = true; /* what the host says is wanted, not what a server of tables does */
	struct asking *a = mem_zalloc(sizeof *a);
	*a = (struct asking){
		.magic = ASKING_MAGIC, .request = r, .loop = loop, .question = v, .json = json};
	a->address = mem_strdup(to.text);
	timer_init(&a->late, on_late, a);
	loop_timer_in(loop, &a->late, PATIENCE_MS);
	v->owner = a;
	r->job = a;
	r->gone = on_client_gone;
	loop_post(qmgr, &v->note);
}

void verify_job_answer(struct verify *v)
{
	struct asking *a = v->owner;
	if (a) {
		magic_check(a, ASKING_MAGIC);
		assert(a->question == v);
		say_answer(a, v);
		asking_free(a);
	}
	verify_free(&v);
}
