/* SPDX-License-Identifier: ISC */
#include "smtpc/engine_impl.h"

#include "base/clock.h"

#include <assert.h>
#include <stdio.h>

/* The host does not want to talk; a 5xx speaks of this host, not of the mail: another host may take it. */
static void leave_refusing_host(struct engine *e, const char *dsn)
{
	e->refused = e->reply.code / 100 == 5;
	engine_refused(e, dsn);
}

void engine_on_greeting(struct engine *e, const struct expected *x)
{
	if (e->reply.code == 220)
		engine_move(e, ENGINE_HELLO);
	else if (engine_negative(e->reply.code))
		leave_refusing_host(e, "4.3.2");
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
static void measure_round_trip(struct engine *e)
{
	int64_t us = clock_steady_us() - e->hello_us;
	if (e->round_trip_us == 0 || us < e->round_trip_us)
		e->round_trip_us = us;
}

static void leave_without_tls(struct engine *e)
{
	e->lacks_tls = true;
	if (e->setup.requiretls) {
		engine_unfit(e, "4.7.10", "does not offer STARTTLS");
		return;
	}
	engine_leave(e, verdict_printf(VERDICT_DEFERRED, 0, "4.7.4", e->setup.peer,
				       "%s does not offer STARTTLS, which is required",
				       e->setup.peer));
}

static void leave_hello(struct engine *e)
{
	assert(e->secure || e->setup.tls < TRANSPORT_TLS_REQUIRED);
	engine_move(e, e->setup.login ? ENGINE_AUTH : ENGINE_READY);
}

static void choose_tls(struct engine *e)
{
	if (e->secure && e->setup.requiretls && !e->can.requiretls)
		engine_unfit(e, "4.7.30", "does not offer it");
	else if (e->secure || e->setup.tls == TRANSPORT_TLS_NONE)
		leave_hello(e);
	else if (e->can.starttls)
		engine_move(e, ENGINE_STARTTLS);
	else if (e->setup.tls >= TRANSPORT_TLS_REQUIRED)
		leave_without_tls(e);
	else
		leave_hello(e);
}

void engine_on_ehlo(struct engine *e, const struct expected *x)
{
	measure_round_trip(e);
	if (engine_positive(e->reply.code)) {
		e->can = capability_of(&e->reply);
		e->can.final = engine_speaks_lmtp(e);
		engine_keep_to_mode(e);
		choose_tls(e);
	} else if (e->reply.code / 100 == 5 && engine_speaks_lmtp(e)) {
		leave_refusing_host(e, NULL);
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
		choose_tls(e);
	else if (engine_negative(e->reply.code))
		leave_refusing_host(e, NULL);
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
	e->try_plain = e->setup.tls < TRANSPORT_TLS_REQUIRED;
	e->lacks_tls = true;
	if (e->setup.requiretls && e->reply.code / 100 != 4) {
		char text[REPLY_TEXT_MAX + 1];
		engine_unfit_for(e, "refuses STARTTLS", reply_text(&e->reply, text));
		return;
	}
	engine_refused(e, "4.7.4");
}

void engine_on_quit(struct engine *e, const struct expected *x)
{
	(void)x; /* whatever it says */
	engine_close(e, BREAK_TOLD, NULL);
}
