/* SPDX-License-Identifier: ISC */
#include "smtpc/engine_impl.h"

void engine_close(struct engine *e, enum transaction_break how, struct verdict *why)
{
	if (how <= BREAK_TOLD)
		engine_blame_unproved(e);
	list_each (link, tmp, &e->transactions) {
		struct transaction *t = list_entry(link, struct transaction, link);
		t->delivery->hung_up = e->hung_up;
		transaction_broken(t, how, engine_sent(e, t), why, e->setup.peer);
		engine_finish(e, t);
	}
	expected_clear(&e->expected);
	buf_clear(e->out);
	verdict_unref(e->why);
	e->why = why;
	engine_move(e, ENGINE_CLOSED);
}

/* A connection that has carried mail and is closed before the first word about the next: that is
 * how hosts limit the messages of a connection. */
static bool ended_between(const struct engine *e)
{
	const struct expected *x = expected_first(&e->expected);
	return e->state == ENGINE_READY && e->answered > 0 &&
	       (!x || x->kind == EXPECTED_MAIL || x->kind == EXPECTED_RSET);
}

static void break_off(struct engine *e, const char *how)
{
	const struct expected *x = expected_first(&e->expected);
	const char *during = x ? expected_text(x->kind) : engine_state_name(e);
	const char *dsn = e->state == ENGINE_HANDSHAKE ? "4.7.5" : "4.4.2";
	e->try_plain = engine_tls_may_fail(e);
	engine_close(e, BREAK_LOST,
		     verdict_printf(VERDICT_DEFERRED, 0, dsn, e->setup.peer,
				    "%s: %s, while waiting for the %s", e->setup.peer, how,
				    during));
}

void engine_lost(struct engine *e, const char *how)
{
	if (e->state == ENGINE_CLOSED)
		return;
	if (e->state == ENGINE_QUITTING || ended_between(e))
		engine_close(e, BREAK_LOST, NULL);
	else
		break_off(e, how);
}

void engine_expired(struct engine *e)
{
	if (e->state == ENGINE_CLOSED)
		return;
	if (e->state == ENGINE_QUITTING)
		engine_close(e, BREAK_LOST, NULL);
	else if (e->state == ENGINE_READY && !expected_first(&e->expected))
		engine_quit(e);
	else if (engine_waits_in_vain(e))
		engine_spare(e);
	else
		break_off(e, engine_sending(e) ? "it takes no more of the message"
					       : "no answer in time");
}

void engine_drop(struct engine *e)
{
	if (e->state == ENGINE_CLOSED)
		return;
	engine_close(e, BREAK_LOST,
		     verdict_new(VERDICT_DEFERRED, 0, "4.3.2", NULL, "the relay was stopped"));
	verdict_unref(e->why);
	e->why = NULL;
	e->confused = false;
}

void engine_renew(struct engine *e, int carried)
{
	e->renew = true;
	e->enough = carried;
	list_each (link, tmp, &e->transactions)
		list_entry(link, struct transaction, link)->blame =
			CONNECTION_FULL; /* or of this */
	engine_close(e, BREAK_TOLD, NULL);
	buf_puts(e->out, "QUIT\r\n"); /* polite, but nobody waits for the answer */
}

struct verdict *engine_why(struct engine *e)
{
	return verdict_ref(e->why);
}
