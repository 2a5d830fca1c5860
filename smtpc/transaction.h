/* transaction.h - one delivery on its way through MAIL, RCPT, DATA and the content.
 *
 * Keeps the books: what each recipient was told, and what that means when all is over or the
 * connection breaks.
 *
 * OWNERSHIP  Holds the delivery until transaction_end().
 * THREAD     Any; no clock, no I/O.
 * STATES     queued -> envelope -> content -> dot (-> answered); it may end from any. Once it may
 *            begin again, for those recipients whose refusal came ahead of its turn: alone then,
 *            with nothing in front of it or behind it (engine_turn.c).
 * ERRORS     As verdicts.
 * SEE        base/delivery.h; RFC 5321 3.3.
 */
#ifndef SMTPC_TRANSACTION_H
#define SMTPC_TRANSACTION_H

#include "base/delivery.h"
#include "base/list.h"
#include "smtpc/content_out.h"
#include "smtpc/expected.h"
#include "smtpc/seven_bit.h"

enum transaction_stage {
	TRANSACTION_QUEUED,   /* nothing of it was sent */
	TRANSACTION_ENVELOPE, /* commands are being sent or wait for their replies */
	TRANSACTION_CONTENT,  /* 354 came, or BDAT was sent: the content is being written */
	TRANSACTION_DOT,      /* all is written; the final reply is owed */
	TRANSACTION_ANSWERED, /* it came; the reply behind it will show whether it was that */
};

enum transaction_break {
	BREAK_LOST,	/* the connection is gone, or the wait was too long */
	BREAK_TOLD,	/* the host said 421, and did nothing of what was sent behind that */
	BREAK_CONFUSED, /* host out of step, to be asked again in a simpler mode */
	BREAK_PROTOCOL, /* the same where none is simpler: what has begun is deferred */
};

struct transaction {
	struct list link;
	struct delivery *delivery;
	enum transaction_stage stage;
	uint64_t next; /* to be sent: 0 MAIL, 1 to nrcpt RCPT, nrcpt + 1 DATA or BDAT, then none */
	uint32_t accepted; /* recipients */
	bool chunked;	   /* by BDAT, not DATA */
	bool ahead;	   /* BDAT does not wait for the replies to the envelope */
	bool behind;	   /* begun before the one in front of it was answered */
	bool after_rset;   /* RSET was sent before MAIL */
	bool mail_accepted;
	bool each;    /* LMTP: the content has a reply for each recipient */
	bool unclear; /* one of these refused */
	bool crowded; /* the host has refused recipients of it for their number, */
	bool fewer;   /* and then all of it: it goes to fewer */
	bool suspect; /* MAIL, or RSET before it, was refused ahead of its turn */
	bool unsure;  /* answered, but the reply behind it does not fit well */
	bool agreed;  /* the answer to it began as consent, and can't be read to its end */
	bool apart;   /* it asks only: nothing rides with it */
	bool alone;   /* the second time: one command, one reply */
	enum expected_kind
		suspected; /* the first command that was refused ahead of its turn; with: */
	enum connection_mode blame; /* what would have spared it, until that is found out; or 0 */
	struct verdict *refusal;    /* and what was said: a reference */
	bool expects_dot;	    /* the reply to the content is in the queue of expected ones */
	struct verdict *answer;	    /* when answered, of several the last: a reference */
	uint64_t offset;	    /* content written so far */
	uint32_t sum;		    /* of it */
	uint64_t dot_end; /* where in the connection's output the content ends, dot and all */
	struct content_out content_out;
	struct seven_bit *seven_bit; /* converts the content first; NULL: it goes as it is */
	uint8_t rcpt[];		     /* what was said to each */
};

void transaction_move(struct transaction *, enum transaction_stage);
/* Forward only: transaction_again() is the one way back. */

struct transaction *transaction_new(struct delivery *);

struct delivery *transaction_end(struct transaction **);
/* Frees all but the delivery. */

void transaction_accept(struct transaction *, uint32_t i);
bool transaction_waits(const struct transaction *, uint32_t i);
/* The recipient is to be asked about, and was not answered yet. */

void transaction_refuse(struct transaction *, uint32_t i, struct verdict *);

void transaction_settle(struct transaction *, uint32_t i);
/* Its verdict, if it has one, stands whatever comes: it was got in its turn. */

void transaction_doubt(struct transaction *, uint32_t i);
void transaction_doubt_all(struct transaction *);
/* The refusal of this one, or of all that have no verdict, is not believed. */

bool transaction_doubted(const struct transaction *);
void transaction_again(struct transaction *);
/* Queued once more, alone, for those whose refusal is not believed. */

bool transaction_owed(const struct transaction *, uint32_t *i);
/* LMTP: the first that was accepted and has no reply to the content yet. False: none is left. */

void transaction_answer(struct transaction *, uint32_t i, struct verdict *);
/* The recipient has that reply, which stands when the transaction is concluded. */

void transaction_postpone(struct transaction *, uint32_t i);
/* Too many recipients at once: no verdict, another transaction soon. */

void transaction_refuse_all(struct transaction *, struct verdict *);
/* Every recipient without a verdict that was not postponed. */

void transaction_told(struct transaction *, struct verdict *);
/* This was the answer to one of its commands, and the host closes: should it come back untouched, that is why. */

void transaction_ended_at(struct transaction *, enum expected_kind, bool for_number);
/* The host ends the connection at this command of it; for_number: as it says, since there are too many recipients. */

void transaction_conclude(struct transaction *, struct verdict *);
/* The recipients that were accepted: it is theirs, unless the message was refused for the number of its recipients. Then they are
 * postponed, and come back as after transaction_ended_at(). */

void transaction_give_back(struct transaction *);
/* Whoever has no verdict yet is tried again at once, on another connection. */

void transaction_broken(struct transaction *, enum transaction_break, bool sent,
			struct verdict *why, const char *host);
/* The verdict on each recipient when the connection ends here: see base/delivery.h. sent: all of
 * its content has left. why may be NULL when nothing was decided yet. */

#endif
