/* engine_impl.h - what the files of the engine share. Each calls only those below it:
 *
 *	engine_connection.c	what the owner says of the connection: TLS, lost, silent, no more wanted
 *	engine.c		input, turns
 *	engine_hello.c		greeting, EHLO, STARTTLS, QUIT
 *	engine_auth.c		AUTH
 *	engine_mail.c		transactions: what is sent
 *	engine_replies.c	transactions: what the replies mean
 *	engine_chunk.c		transactions by BDAT
 *	engine_each.c		the replies to content in LMTP
 *	engine_answer.c		the answer to a whole message
 *	engine_told.c		421, and what may be answered behind it
 *	engine_turn.c		is a refusal to be believed?
 *	engine_step.c		is the host in step?
 *	engine_end.c		how it closes
 *	engine_core.c		states, commands, verdicts, what is done
 *
 * OWNERSHIP  As engine.h.
 * THREAD     As engine.h.
 */
#ifndef SMTPC_ENGINE_IMPL_H
#define SMTPC_ENGINE_IMPL_H

#include "smtpc/engine.h"

/* Handlers note what a reply means; they send nothing. */
#define X(kind, text, handler, ...)                                                                \
	void engine_on_##handler(struct engine *, const struct expected *);
EXPECTED_KINDS(X)
#undef X

/* The command of a state when nothing stands in the way. */
void engine_say_hello(struct engine *);
void engine_say_starttls(struct engine *);
void engine_say_auth(struct engine *);
void engine_say_transactions(struct engine *);

/* engine_core.c */

void engine_move(struct engine *, enum engine_state);
void engine_say(struct engine *, const char *line, struct expected); /* a command without CRLF */
void engine_expect(struct engine *, struct expected);

struct verdict *engine_verdict(const struct engine *, enum verdict_class);
/* Of the reply at hand. */

bool engine_sent(const struct engine *, const struct transaction *);
/* The last byte of its content has left out. */

void engine_finish(struct engine *, struct transaction *);
/* The transaction has its verdicts: to be taken. */

void engine_put_done(struct engine *, struct delivery *); /* the same of one that never began */

/* engine_end.c */

void engine_close(struct engine *, enum transaction_break, struct verdict *why);
/* Every transaction ends as it stands. Takes why, which may be NULL. */

void engine_leave(struct engine *, struct verdict *why); /* the same in order, with QUIT */

void engine_refused(struct engine *, const char *dsn);
/* The host does not want to talk: left, with its reply as a deferral. dsn, or NULL: for a reply without
 * an enhanced code. */

void engine_unfit(struct engine *, const char *dsn, const char *lacks);
/* The host can't do what setup.requiretls wants: left. */

void engine_unfit_for(struct engine *, const char *what, const char *why); /* the same, of TLS */

void engine_renew(struct engine *, int carried);
/* Left; what is given comes back, and is to go on on a fresh connection to the same host.
 * carried: messages that this one has carried, if it is that which ends it; or 0. */

/* engine_step.c */

void engine_unexpected(struct engine *, const struct expected *);
/* Closed: the reply does not belong there. */

void engine_unsolicited(struct engine *, const struct buf *in);
/* Closed: nothing was asked, but something came. */

void engine_garbage(struct engine *); /* closed: no reply at all */

void engine_out_of_step(struct engine *, struct verdict *why);
/* Closed; where there is a simpler mode, to be tried in that. Takes why, which may be NULL. */

bool engine_misplaced(const struct engine *, const struct expected *);
/* The reply at hand is to another command. */

bool engine_tls_may_fail(const struct engine *);

enum verdict_class engine_refusal_class(struct engine *);
/* Of the refusal at hand. One for the sake of TLS, which is there and has failed, is none for good: the connection ends when
 * nothing is left to do on it. */

bool engine_speaks_of_sender(const struct engine *);
/* The enhanced code of the reply at hand is one of those that only MAIL gets. */

bool engine_speaks_of_number(const struct engine *);
/* The reply at hand says that there are too many recipients. */

/* engine_turn.c */

bool engine_believes(const struct engine *, const struct expected *);
/* The reply at hand, a refusal, counts: it did not come ahead of its turn, or speaks of the mail. */

void engine_suspect(struct engine *, const struct expected *);
/* The refusal does not count: remember what would have spared it. The recipients concerned are the caller's to
 * doubt. */

void engine_compare(struct engine *, const struct expected *);
/* Before each reply: is it what was refused ahead of its turn? */

void engine_end_transaction(struct engine *, struct transaction *);
/* The transaction has its replies: queued again where one is not believed, else engine_finish(). */

bool engine_waits_in_vain(const struct engine *);
/* The message in front has its answer, and the envelope that was sent behind it may have been thrown away. */

void engine_spare(struct engine *);
/* The envelope was thrown away: closed, what is given comes back, and the next connection is CONNECTION_APART. */

bool engine_followed(const struct engine *, const struct transaction *);
/* Another transaction has begun behind this one. */

void engine_keep_to_mode(struct engine *);
/* Extensions that were announced, without those that the mode spares the host. */

bool engine_speaks_of_us(const struct engine *);
/* The refusal at hand is one of our rate or reputation, and not of this connection. */

/* engine_told.c */

void engine_told(struct engine *, const struct expected *);
/* The reply at hand is 421: CLOSED now, or LISTENING, until one of the last three ends that. */

void engine_end_told(struct engine *, struct transaction *);
/* The same, and it was the answer to this one, which has its verdicts. */

void engine_hear_late(struct engine *, const struct expected *); /* a reply behind the 421 */
void engine_obey(struct engine *);				 /* nothing more comes: closed */
void engine_heard_nothing(struct engine *);			 /* nothing came in time: closed */

/* engine_answer.c */

void engine_concluded(struct engine *, struct transaction *);
/* All that it is owed has come, and is believed. */

struct transaction *engine_answered_one(const struct engine *);
/* The one in front, if it has an answer that is not concluded; or NULL. */

void engine_believe_answer(struct engine *);
/* The reply behind the first answer has shown that it was one: conclude. */

bool engine_only_rset_refused(const struct engine *);
/* The reply at hand, consent, is truly to the MAIL behind a RSET that was refused; and the message
 * before that was taken, so that there was nothing to reset. */

void engine_heed_number(const struct engine *, struct transaction *);
/* The reply at hand refuses it: is that for the number of its recipients? */

void engine_message_refused(struct engine *, const struct expected *);
/* The reply at hand is the verdict of those who were accepted; it counts, or not. */

void engine_answered_early(struct engine *, const struct expected *);
/* The reply at hand is to content that is not all sent. */

void engine_end_chunk(struct engine *, struct transaction *, bool unclear);
/* Over; unclear: RSET goes before the next, since the host may hold on to the envelope. */

/* engine_each.c */

void engine_answered_each(struct engine *, const struct expected *);
/* LMTP: the reply at hand is to the content, about one recipient. */

/* engine_chunk.c */

bool engine_say_chunk(struct engine *, struct transaction *);
/* BDAT. False: not yet. */

/* engine_auth.c */

void engine_end_auth(struct engine *);
/* Forget what was said of the login. */

static inline bool engine_speaks_lmtp(const struct engine *e)
{
	return e->setup.transport->protocol == TRANSPORT_PROTOCOL_LMTP;
}

static inline bool engine_positive(int code)
{
	/* 220 and 221 are a greeting and a good-bye: in answer to anything else, out of step. */
	return code / 100 == 2 && code != 220 && code != 221;
}

static inline bool engine_negative(int code)
{
	return code / 100 == 4 || code / 100 == 5;
}

#endif
