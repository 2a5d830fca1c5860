/* SPDX-License-Identifier: ISC */
/* Is the host in step? Nothing in a reply says what it answers. One that comes too early, that no
 * command can have got, or whose enhanced code speaks of something else shows that the host has
 * lost count; the connection then is over, and the next one may ask less of it.
 */
#include "smtpc/engine_impl.h"

#include <string.h>

/* Enhanced codes x.1.y that a kind of command does not get. RFC 3463 3.2: .0, .7 and .8 are of a
 * sender where hosts use them, .1 to .6 of a recipient. A chunk may be refused for the sake of an
 * address, but it is not an address that is praised when it is taken. */
struct foreign {
	enum expected_kind kind;
	const char *details;
};

static const struct foreign foreign[] = {
	{EXPECTED_RSET, "078"},
	{EXPECTED_MAIL, "123456"},
	{EXPECTED_BDAT, "012345678"},
	{EXPECTED_QUIT, NULL},
};

/* In LMTP the content may be answered with what RCPT gets, and RSET with neither. */
static const struct foreign foreign_in_lmtp[] = {
	{EXPECTED_RSET, "012345678"},
	{EXPECTED_MAIL, "123456"},
	{EXPECTED_RCPT, "078"},
	{EXPECTED_QUIT, NULL},
};

static bool speaks_of(const char *dsn, const char *details)
{
	return dsn[0] && strncmp(dsn + 1, ".1.", 3) == 0 && dsn[4] && strchr(details, dsn[4]) &&
	       dsn[5] == '\0';
}

bool engine_speaks_of_sender(const struct engine *e)
{
	return speaks_of(e->reply.dsn, "078");
}

/* RFC 3207 4 has 530, RFC 5248 2.4 X.7.10. */
static bool misses_tls(const struct engine *e)
{
	bool encryption = e->reply.dsn[0] && strcmp(e->reply.dsn + 1, ".7.10") == 0;
	return e->setup.spared_tls && e->can.starttls && (e->reply.code == 530 || encryption);
}

enum verdict_class engine_refusal_class(struct engine *e)
{
	if (e->reply.code / 100 != 5)
		return VERDICT_DEFERRED;
	if (!misses_tls(e))
		return VERDICT_FAILED;
	e->wants_tls = e->quit = true;
	return VERDICT_DEFERRED;
}

/* RFC 3463 3.6: X.5.3 is this alone. */
bool engine_speaks_of_number(const struct engine *e)
{
	char text[REPLY_TEXT_MAX + 1];
	if (e->reply.dsn[0] != '\0')
		return strcmp(e->reply.dsn + 1, ".5.3") == 0;
	return strcasestr(reply_text(&e->reply, text), "too many recipients") != NULL;
}

bool engine_misplaced(const struct engine *e, const struct expected *x)
{
	const struct transaction *t = x->transaction;
	/* One that is owed from before, in front of no transaction that it would belong to. */
	if (x->kind == EXPECTED_RSET && !t)
		return e->can.chunking && e->can.pipelining && engine_speaks_of_sender(e);
	if (!t || !(t->chunked || t->each) || !e->can.pipelining)
		return false;
	if (x->kind == EXPECTED_MAIL && !t->behind && !t->alone && !x->early)
		return false; /* nothing was before it that could have shifted */
	const struct foreign *f = t->each ? foreign_in_lmtp : foreign;
	while (f->details && f->kind != x->kind)
		f++;
	bool whatever = x->kind != EXPECTED_BDAT && x->kind != EXPECTED_RCPT;
	return f->details && (whatever || engine_positive(e->reply.code)) &&
	       speaks_of(e->reply.dsn, f->details);
}

static bool simplify_mode(struct engine *e)
{
	if (e->state != ENGINE_READY || (!e->can.chunking && !e->can.pipelining))
		return false;
	e->confused = true;
	e->mode |= e->can.chunking ? CONNECTION_NO_CHUNKING : CONNECTION_LOCKSTEP;
	return true;
}

void engine_out_of_step(struct engine *e, struct verdict *why)
{
	engine_close(e, simplify_mode(e) ? BREAK_CONFUSED : BREAK_PROTOCOL, why);
}

void engine_unexpected(struct engine *e, const struct expected *x)
{
	char text[REPLY_TEXT_MAX + 1];
	reply_text(&e->reply, text);
	engine_out_of_step(e,
			   verdict_printf(VERDICT_DEFERRED, 0, "4.5.0", e->setup.peer,
					  "%s is out of step: unexpected %s: %d %s", e->setup.peer,
					  expected_text(x->kind), e->reply.code, text));
}

/* The first transaction that has begun and has no final reply, or NULL. */
static const struct transaction *first_begun(const struct engine *e)
{
	if (list_empty(&e->transactions))
		return NULL;
	const struct transaction *t = list_entry(e->transactions.next, struct transaction, link);
	return t->stage == TRANSACTION_QUEUED ? NULL : t;
}

/* Nothing was asked, but something came. A host that goes away between two messages may say so, and
 * has done nothing wrong unless it never carried any; anything but that 421 is a reply too many. */
void engine_unsolicited(struct engine *e, const struct buf *in)
{
	struct verdict *why = NULL;
	bool idle = e->state == ENGINE_READY && !first_begun(e);
	bool reply = buf_len(in) >= 3 && memcmp(buf_data(in), "421", 3) != 0;
	if (!idle || e->answered == 0)
		why = verdict_printf(VERDICT_DEFERRED, 0, "4.5.0", e->setup.peer,
				     "%s is out of step: it answers what was not asked",
				     e->setup.peer);
	if (!idle || reply)
		engine_out_of_step(e, why);
	else
		engine_close(e, BREAK_TOLD, why);
}

bool engine_tls_may_fail(const struct engine *e)
{
	return (e->state == ENGINE_STARTTLS || e->state == ENGINE_HANDSHAKE) &&
	       e->setup.tls < TRANSPORT_TLS_REQUIRED;
}

void engine_garbage(struct engine *e)
{
	const struct expected *x = expected_first(&e->expected);
	if (x->kind == EXPECTED_DOT)
		x->transaction->agreed = engine_positive(reply_begun(&e->reply));
	e->try_plain = engine_tls_may_fail(e);
	engine_out_of_step(e, verdict_printf(VERDICT_DEFERRED, 0, "4.5.0", e->setup.peer,
					     "%s does not speak SMTP: %s in the %s", e->setup.peer,
					     e->reply.error, expected_text(x->kind)));
}
