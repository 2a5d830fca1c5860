/* SPDX-License-Identifier: ISC */
/* How it closes: each transaction ends as it stands, and QUIT goes where the host still listens. */
#include "smtpc/engine_impl.h"

#include <assert.h>
#include <stdio.h>

/* The connection ends before it was found out what the host dislikes. */
static void blame_unproved(struct engine *e)
{
	list_each (link, tmp, &e->transactions) {
		const struct transaction *t = list_entry(link, struct transaction, link);
		e->confused |= t->blame != CONNECTION_FULL;
		e->mode |= t->blame;
	}
}

void engine_close(struct engine *e, enum transaction_break how, struct verdict *why)
{
	if (how <= BREAK_TOLD)
		blame_unproved(e);
	list_each (link, tmp, &e->transactions) {
		struct transaction *t = list_entry(link, struct transaction, link);
		t->delivery->hung_up = e->hung_up;
		transaction_broken(t, how, engine_sent(e, t), why, e->setup.peer);
		engine_finish(e, t);
	}
	assert(list_empty(&e->transactions));
	expected_clear(&e->expected);
	buf_clear(e->out);
	verdict_unref(e->why);
	e->why = why;
	engine_move(e, ENGINE_CLOSED);
}

/* Polite, but nobody waits for the answer. */
void engine_leave(struct engine *e, struct verdict *why)
{
	engine_close(e, BREAK_TOLD, why);
	buf_puts(e->out, "QUIT\r\n");
}

bool engine_awaited(const struct engine *e)
{
	list_each (link, tmp, &e->transactions)
		if (engine_sent(e, list_entry(link, struct transaction, link)))
			return true;
	return false;
}

struct verdict *engine_why(struct engine *e)
{
	return verdict_ref(e->why);
}

void engine_renew(struct engine *e, int carried)
{
	assert(carried >= 0);
	e->renew = true;
	e->enough = carried;
	/* A refusal may have been for this. The fresh one is spared it all the same: else the same would come of it there. */
	list_each (link, tmp, &e->transactions) {
		struct transaction *t = list_entry(link, struct transaction, link);
		e->mode |= t->blame;
		t->blame = CONNECTION_FULL;
	}
	engine_leave(e, NULL);
}

void engine_refused(struct engine *e, const char *dsn)
{
	struct verdict *why = engine_verdict(e, VERDICT_DEFERRED);
	if (dsn && e->reply.dsn[0] == '\0') {
		struct verdict *bare = why;
		why = verdict_reworded(bare, VERDICT_DEFERRED, dsn, bare->host, bare->text);
		verdict_unref(bare);
	}
	engine_leave(e, why);
}

/* RFC 8689 4.2.1: 7.10 where TLS is what lacks, 7.30 where that is all. What may be chance is tried again: 4xx to
 * STARTTLS, and a handshake that breaks off. */
void engine_unfit(struct engine *e, const char *dsn, const char *lacks)
{
	assert(e->setup.requiretls);
	e->unfit = true;
	engine_leave(e,
		     verdict_printf(VERDICT_DEFERRED, 0, dsn, e->setup.peer,
				    "REQUIRETLS was asked for, and %s %s", e->setup.peer, lacks));
}

void engine_unfit_for(struct engine *e, const char *what, const char *why)
{
	char lacks[REPLY_TEXT_MAX + 64];
	snprintf(lacks, sizeof lacks, "%s: %s", what, why);
	engine_unfit(e, "4.7.10", lacks);
}
