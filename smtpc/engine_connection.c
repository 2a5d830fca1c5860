/* SPDX-License-Identifier: ISC */
/* News of the connection from its owner: TLS stands or does not, it is lost, silent, or no more wanted. */
#include "smtpc/engine_impl.h"

#include <assert.h>

/* RFC 3207 4.2: what was said before is forgotten. */
void engine_secured(struct engine *e)
{
	assert(e->state == ENGINE_HANDSHAKE && !e->secure);
	e->secure = true;
	e->helo = false;
	e->can = (struct capability){0};
	engine_move(e, ENGINE_HELLO);
	engine_resume(e);
}

void engine_unshaken(struct engine *e, const char *why)
{
	if (!e->setup.requiretls) {
		engine_lost(e, why);
		return;
	}
	engine_unfit_for(e, "can't begin TLS", why);
	buf_clear(e->out);
}

void engine_untrusted(struct engine *e, const char *why)
{
	if (e->setup.requiretls) {
		engine_unfit(e, "4.7.10", why);
		return;
	}
	engine_leave(e, verdict_printf(VERDICT_DEFERRED, 0, "4.7.5", e->setup.peer, "%s: %s",
				       e->setup.peer, why));
}

void engine_quit(struct engine *e)
{
	e->quit = true;
	if (e->state == ENGINE_READY)
		engine_resume(e);
	else if (e->state < ENGINE_READY)
		engine_close(e, BREAK_TOLD, NULL);
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

/* At a recipient too many, perhaps. */
static void break_off_by_host(struct engine *e, const char *how)
{
	const struct expected *x = expected_first(&e->expected);
	if (x && x->transaction)
		transaction_ended_at(x->transaction, x->kind, false);
	break_off(e, how);
}

void engine_lost(struct engine *e, const char *how)
{
	if (e->state == ENGINE_CLOSED)
		return;
	if (e->state == ENGINE_LISTENING)
		engine_obey(e);
	else if (e->state == ENGINE_QUITTING || ended_between(e))
		engine_close(e, BREAK_LOST, NULL);
	else
		break_off_by_host(e, how);
}

void engine_left(struct engine *e, const char *how)
{
	if (e->state == ENGINE_READY)
		break_off(e, how);
	else
		engine_lost(e, how);
}

void engine_expired(struct engine *e)
{
	if (e->state == ENGINE_CLOSED)
		return;
	if (e->state == ENGINE_LISTENING)
		engine_heard_nothing(e);
	else if (e->state == ENGINE_QUITTING)
		engine_close(e, BREAK_LOST, NULL);
	else if (e->state == ENGINE_READY && !expected_first(&e->expected))
		engine_quit(e);
	else if (engine_waits_in_vain(e))
		engine_spare(e);
	else
		break_off_by_host(e, engine_sending(e) ? "it takes no more of the message"
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
