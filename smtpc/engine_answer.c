/* SPDX-License-Identifier: ISC */
/* The answer to a whole message: what it means for those who were accepted, and when it is believed to be
 * that.
 *
 * Behind content that went ahead of its turn the reply to the next command, RSET, shows that the one
 * before it was the answer. Until then the transaction is ANSWERED, and not concluded.
 */
#include "smtpc/engine_impl.h"

#include <assert.h>

/* Hosts that refuse all of a message for having had too many recipients (Exim's recipients_max_reject) take it for fewer. */
void engine_heed_number(const struct engine *e, struct transaction *t)
{
	assert(t->accepted > 0 && engine_negative(e->reply.code));
	t->fewer = t->crowded && engine_speaks_of_number(e);
}

/* The verdict of those accepted; it counts, or not. */
void engine_message_refused(struct engine *e, const struct expected *x)
{
	if (x->transaction->accepted == 0)
		return;
	if (!engine_believes(e, x)) {
		engine_suspect(e, x);
		transaction_doubt_all(x->transaction);
		return;
	}
	struct verdict *v = engine_verdict(e, engine_refusal_class(e));
	engine_heed_number(e, x->transaction);
	transaction_conclude(x->transaction, v);
	verdict_unref(v);
}

/* One that has begun behind this one has a RSET of its own. */
void engine_end_chunk(struct engine *e, struct transaction *t, bool unclear)
{
	e->owes_rset |= unclear && !engine_followed(e, t);
	engine_end_transaction(e, t);
}

void engine_concluded(struct engine *e, struct transaction *t)
{
	assert(t->answer);
	int code = t->answer->code;
	transaction_conclude(t, t->answer);
	if (code == 421)
		engine_end_told(e, t);
	else
		engine_end_chunk(e, t, t->unclear || !engine_positive(code));
}

struct transaction *engine_answered_one(const struct engine *e)
{
	if (list_empty(&e->transactions))
		return NULL;
	struct transaction *t = list_entry(e->transactions.next, struct transaction, link);
	return t->stage == TRANSACTION_ANSWERED ? t : NULL;
}

void engine_believe_answer(struct engine *e)
{
	struct transaction *t = engine_answered_one(e);
	if (t)
		engine_concluded(e, t);
}

bool engine_only_rset_refused(const struct engine *e)
{
	const struct transaction *t = engine_answered_one(e);
	return t && t->answer->class == VERDICT_SENT && engine_speaks_of_sender(e);
}

/* The refusal is of the first, and the others have heard nothing: they wait. */
static void refused_early(struct engine *e, struct transaction *t)
{
	uint32_t i;
	struct verdict *v = engine_verdict(e, engine_refusal_class(e));
	if (transaction_owed(t, &i))
		transaction_answer(t, i, v);
	verdict_unref(v);
	engine_close(e, BREAK_TOLD, engine_verdict(e, VERDICT_DEFERRED));
}

/* The host did not wait for the end of the content. A refusal counts, but the connection is of no
 * more use; anything else can't be the truth. */
void engine_answered_early(struct engine *e, const struct expected *x)
{
	if (e->reply.code == 421) {
		engine_close(e, BREAK_TOLD, engine_verdict(e, VERDICT_DEFERRED));
		return;
	}
	if (!engine_negative(e->reply.code)) {
		engine_unexpected(e, x);
		return;
	}
	if (x->transaction->each) {
		refused_early(e, x->transaction);
		return;
	}
	engine_message_refused(e, x);
	engine_close(e, BREAK_TOLD, NULL);
}
