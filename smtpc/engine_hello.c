/* SPDX-License-Identifier: ISC */
#include "smtpc/engine_impl.h"

#include "base/clock.h"

#include <stdio.h>

void engine_refused(struct engine *e, const char *dsn)
{
	struct verdict *why = engine_verdict(e, VERDICT_DEFERRED);
	if (dsn && e->reply.dsn[0] == '\0') {
		struct verdict *bare = why;
		why = verdict_reworded(bare, VERDICT_DEFERRED, dsn, bare->host, bare->text);
		verdict_unref(bare);
	}
	engine_close(e, BREAK_TOLD, why);
	buf_puts(e->out, "QUIT\r\n"); /* polite, but nobody waits for the answer */
}

/* It does not want to talk; a 5xx speaks of this host, not of the mail: another host may take it. */
static void turned_away(struct engine *e, const char *dsn)
{
	e->refused = e->reply.code / 100 == 5;
	engine_refused(e, dsn);
}

void engine_on_greeting(struct engine *e, const struct expected *x)
{
	if (e->reply.code == 220)
		engine_move(e, ENGINE_HELLO);
	else if (engine_negative(e->reply.code))
		turned_away(e, "4.3.2");
	else
		engine_unexpected(e, x);
}

void engine_say_hello(struct engine *e)
{
	char line[300];
	const char *verb = engine_speaks_lmtp(e) ? "LHLO" : e->helo ? "HELO" : "EHLO";
	enum expected_kind kind = engine_speaks_lmtp(e) ? EXPECTED_LHLO
				  : e->helo		? EXPECTED_HELO
							: EXPECTED_EHLO;
	if (expected_first(&e->expected))
		return;
	snprintf(line, sizeof line, "%s %.255s", verb, e->setup.hostname);
	e->hello_us = clock_steady_us();
	engine_say(e, line, (struct expected){.kind = kind});
}

/* A host may think before it answers; the least that was seen is the way there and back. */
static void measure(struct engine *e)
{
	int64_t us = clock_steady_us() - e->hello_us;
	if (e->round_trip_us == 0 || us < e->round_trip_us)
		e->round_trip_us = us;
}

/* RFC 8689 4.2.1: 7.10 where TLS is what lacks, 7.30 where that is all. What may be chance is tried again: 4xx to
 * STARTTLS, and a handshake that breaks off. */
static void unfit(struct engine *e, const char *dsn, const char *lacks)
{
	e->unfit = true;
	engine_close(e, BREAK_TOLD,
		     verdict_printf(VERDICT_DEFERRED, 0, dsn, e->setup.peer,
				    "REQUIRETLS was asked for, and %s %s", e->setup.peer, lacks));
	buf_puts(e->out, "QUIT\r\n");
}

static void unfit_for(struct engine *e, const char *what, const char *why)
{
	char lacks[REPLY_TEXT_MAX + 64];
	snprintf(lacks, sizeof lacks, "%s: %s", what, why);
	unfit(e, "4.7.10", lacks);
}

static void without_tls(struct engine *e)
{
	if (e->setup.requiretls) {
		unfit(e, "4.7.10", "does not offer STARTTLS");
		return;
	}
	engine_close(e, BREAK_TOLD,
		     verdict_printf(VERDICT_DEFERRED, 0, "4.7.4", e->setup.peer,
				    "%s does not offer STARTTLS, which is required",
				    e->setup.peer));
	buf_puts(e->out, "QUIT\r\n");
}

static void introduced(struct engine *e)
{
	engine_move(e, e->setup.login ? ENGINE_AUTH : ENGINE_READY);
}

static void greeted(struct engine *e)
{
	if (e->secure && e->setup.requiretls && !e->can.requiretls)
		unfit(e, "4.7.30", "does not offer it");
	else if (e->secure || e->setup.tls == TRANSPORT_TLS_NONE)
		introduced(e);
	else if (e->can.starttls)
		engine_move(e, ENGINE_STARTTLS);
	else if (e->setup.tls >= TRANSPORT_TLS_REQUIRED)
		without_tls(e);
	else
		introduced(e);
}

/* A host that could not do what it announces is not asked for it again. */
void engine_keep_to_mode(struct engine *e)
{
	if (e->setup.mode & CONNECTION_NO_CHUNKING) {
		e->can.withheld |= e->can.chunking;
		e->can.chunking = false;
	}
	if (e->setup.mode & CONNECTION_LOCKSTEP)
		e->can.pipelining = false;
	e->apart = e->setup.mode & CONNECTION_APART;
}

void engine_on_ehlo(struct engine *e, const struct expected *x)
{
	measure(e);
	if (engine_positive(e->reply.code)) {
		e->can = capability_of(&e->reply);
		e->can.final = engine_speaks_lmtp(e);
		engine_keep_to_mode(e);
		greeted(e);
	} else if (e->reply.code / 100 == 5 && engine_speaks_lmtp(e)) {
		turned_away(e, NULL);
	} else if (e->reply.code / 100 == 5) {
		e->helo = true; /* RFC 5321 3.2 */
	} else if (engine_negative(e->reply.code)) {
		engine_refused(e, NULL);
	} else {
		engine_unexpected(e, x);
	}
}

void engine_on_helo(struct engine *e, const struct expected *x)
{
	if (engine_positive(e->reply.code))
		greeted(e);
	else if (engine_negative(e->reply.code))
		turned_away(e, NULL);
	else
		engine_unexpected(e, x);
}

void engine_say_starttls(struct engine *e)
{
	if (!expected_first(&e->expected))
		engine_say(e, "STARTTLS", (struct expected){.kind = EXPECTED_STARTTLS});
}

/* Anything but 220 is a failure to begin TLS. Where TLS is only wished for, the whole connection is
 * made anew without it: after a broken STARTTLS nobody knows what the host expects next. */
void engine_on_starttls(struct engine *e, const struct expected *x)
{
	(void)x;
	if (e->reply.code == 220) {
		engine_move(e, ENGINE_HANDSHAKE);
		return;
	}
	if (e->setup.requiretls && e->reply.code / 100 != 4) {
		char text[REPLY_TEXT_MAX + 1];
		unfit_for(e, "refuses STARTTLS", reply_text(&e->reply, text));
		return;
	}
	e->try_plain = e->setup.tls < TRANSPORT_TLS_REQUIRED;
	engine_refused(e, "4.7.4");
}

void engine_unshaken(struct engine *e, const char *why)
{
	if (!e->setup.requiretls) {
		engine_lost(e, why);
		return;
	}
	unfit_for(e, "can't begin TLS", why);
	buf_clear(e->out);
}

/* RFC 3207 4.2: what was said before is forgotten. */
void engine_secured(struct engine *e)
{
	e->secure = true;
	e->helo = false;
	e->can = (struct capability){0};
	engine_move(e, ENGINE_HELLO);
	engine_resume(e);
}

void engine_untrusted(struct engine *e, const char *why)
{
	if (e->setup.requiretls) {
		unfit(e, "4.7.10", why);
		return;
	}
	engine_close(e, BREAK_TOLD,
		     verdict_printf(VERDICT_DEFERRED, 0, "4.7.5", e->setup.peer, "%s: %s",
				    e->setup.peer, why));
	buf_puts(e->out, "QUIT\r\n");
}

void engine_quit(struct engine *e)
{
	e->quit = true;
	if (e->state == ENGINE_READY)
		engine_resume(e);
	else if (e->state < ENGINE_READY)
		engine_close(e, BREAK_TOLD, NULL);
}

void engine_on_quit(struct engine *e, const struct expected *x)
{
	(void)x; /* whatever it says */
	engine_close(e, BREAK_TOLD, NULL);
}
