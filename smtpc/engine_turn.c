/* SPDX-License-Identifier: ISC */
/* Is a refusal to be believed? What was sent before all that was said earlier had its answer is ahead
 * of its turn, and what a host says against it may be said against that: whatever it announces. Then
 * nobody is told no. The recipients concerned are asked about once more, alone, one command after
 * the other, and only that counts; so each transaction costs at most one more.
 *
 *	refused ahead of its turn			believed
 *	MAIL behind a message that has no answer	never
 *	DATA						never
 *	MAIL behind RSET, RCPT, a chunk, and the end	where it speaks of the mail: code not 500 to
 *	of a message with another behind it		504, enhanced code x.1.y (address), x.2.y
 *							(mailbox), x.3.1, x.3.4 (room, size), x.6.y
 *							(content) or x.7.y (policy); without one,
 *							450, 452, 550 to 553
 *
 * A host may also throw away what lies in its buffer when it answers the end of a message: then the envelope behind that has no
 * answer at all, ever. So where the answer to its first command, or to the RSET before it, takes more than ten round trips and
 * two seconds from the answer in front of it, the connection ends, and the next gets nothing behind a message without an answer.
 * Nothing is in doubt by that, for no content goes before the answer to such an envelope on a host that has not answered one yet:
 * and where content is under way, the wait is as long as any.
 *
 * When a command that was refused so is taken in its turn, it was the hurry: from then on, here and on
 * the next connections, nothing goes behind a message without an answer (CONNECTION_APART); or, if
 * nothing did, each command waits for its reply (CONNECTION_LOCKSTEP).
 */
#include "smtpc/engine_impl.h"

#include "base/reason.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

bool engine_followed(const struct engine *e, const struct transaction *t)
{
	return t->link.next != &e->transactions &&
	       list_entry(t->link.next, struct transaction, link)->stage != TRANSACTION_QUEUED;
}

bool engine_waits_in_vain(const struct engine *e)
{
	const struct expected *x = expected_first(&e->expected);
	const struct transaction *t = x ? x->transaction : NULL;
	return e->state == ENGINE_READY && t && t->behind && !t->alone &&
	       t->stage == TRANSACTION_ENVELOPE &&
	       x->kind == (t->after_rset ? EXPECTED_RSET : EXPECTED_MAIL);
}

void engine_spare(struct engine *e)
{
	e->confused = true;
	e->mode |= CONNECTION_APART;
	engine_close(
		e,
		BREAK_TOLD, /* what was answered stands, and nothing was done of what is behind that */
		verdict_printf(VERDICT_DEFERRED, 0, "4.4.2", e->setup.peer,
			       "%s has not answered what came ahead of its own answer",
			       e->setup.peer));
}

static bool ends_message(const struct expected *x)
{
	return x->kind == EXPECTED_DOT || x->kind == EXPECTED_BDAT;
}

static bool ahead_of_turn(const struct engine *e, const struct expected *x)
{
	return x->early || (ends_message(x) && engine_followed(e, x->transaction));
}

static bool any_of(const char *s, const char *const *prefixes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(s, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

/* Of an address, a mailbox, the content: not of the order of the commands. */
static bool speaks_of_mail(const struct reply *r)
{
	static const char *const details[] = {".1.", ".2.", ".3.1", ".3.4", ".6.", ".7."};
	if (r->code >= 500 && r->code <= 504)
		return false;
	if (r->dsn[0])
		return any_of(r->dsn + 1, details, sizeof details / sizeof details[0]);
	return r->code == 450 || r->code == 452 || (r->code >= 550 && r->code <= 553);
}

/* Not of this connection: another would be told the same. */
bool engine_speaks_of_us(const struct engine *e)
{
	static const char *const connection[] = {"connection", "session"};
	struct verdict *v = engine_verdict(e, VERDICT_DEFERRED);
	enum reason r = reason_of(v);
	bool ours = strncmp(v->dsn, "4.7.", 4) == 0 &&
		    (r == REASON_RATE_LIMITED || r == REASON_REPUTATION);
	for (size_t i = 0; i < sizeof connection / sizeof connection[0]; i++)
		ours &= strcasestr(v->text, connection[i]) == NULL;
	verdict_unref(v);
	return ours;
}

bool engine_believes(const struct engine *e, const struct expected *x)
{
	if (!ahead_of_turn(e, x) || e->reply.code == 421)
		return true; /* 421 ends the connection, whatever it answers */
	if (x->kind == EXPECTED_DATA || (x->kind == EXPECTED_MAIL && x->transaction->behind))
		return false;
	return speaks_of_mail(&e->reply);
}

void engine_suspect(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	assert(!t->alone);
	if (t->blame)
		return;
	t->suspected = x->kind;
	t->blame = t->behind || ends_message(x) ? CONNECTION_APART : CONNECTION_LOCKSTEP;
	t->refusal = engine_verdict(e, VERDICT_DEFERRED);
}

static bool is_taken(const struct engine *e, const struct expected *x)
{
	return engine_positive(e->reply.code) ||
	       (x->kind == EXPECTED_DATA && e->reply.code / 100 == 3);
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

/* The hurry was at fault: the host is spared it, and qmgr told so with the delivery. */
static void learn_mode(struct engine *e, struct transaction *t)
{
	struct delivery *d = t->delivery;
	assert(t->alone && t->refusal);
	d->mode = t->blame;
	verdict_unref(d->reason);
	d->reason = verdict_printf(
		VERDICT_DEFERRED, t->refusal->code, t->refusal->dsn, e->setup.peer,
		"ahead of its turn the %s was %d %s, in its turn %d", expected_text(t->suspected),
		t->refusal->code, t->refusal->text, e->reply.code);
	e->setup.mode |= t->blame;
	engine_keep_to_mode(e);
}

void engine_compare(struct engine *e, const struct expected *x)
{
	struct transaction *t = x->transaction;
	if (!t || !t->alone || !t->blame || x->kind != t->suspected)
		return;
	bool yes = is_taken(e, x);
	if (yes)
		learn_mode(e, t);
	if (yes || (x->kind != EXPECTED_RCPT && !t->each)) /* another recipient may yet be taken */
		t->blame = CONNECTION_FULL;
}

/* Behind those that have begun and those that wait for the same, before all others. */
static void queue_again(struct engine *e, struct transaction *t)
{
	struct list *at = &e->transactions;
	assert(t->alone && t->stage == TRANSACTION_QUEUED);
	list_remove(&t->link);
	list_each (link, tmp, &e->transactions) {
		const struct transaction *other = list_entry(link, struct transaction, link);
		if (other->stage == TRANSACTION_QUEUED && !other->alone) {
			at = link;
			break;
		}
	}
	list_insert_before(at, &t->link);
}

void engine_end_transaction(struct engine *e, struct transaction *t)
{
	if (!transaction_doubted(t)) {
		engine_finish(e, t);
		return;
	}
	transaction_again(t);
	queue_again(e, t);
	e->owes_rset = true; /* nobody knows what the host makes of what it refused */
}
