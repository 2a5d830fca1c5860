/* limit_check.h - a session asks the limiter about a message or a recipient, and obeys it.
 *
 * OWNERSHIP  A question is made by the verb, alone or as the first member of what it wants to find
 *            again; limit_check_ask() takes it.
 * THREAD     The session's worker.
 * ERRORS     As a reply.
 * SEE        limiter.h.
 */
#ifndef SMTPD_LIMIT_CHECK_H
#define SMTPD_LIMIT_CHECK_H

#include "smtpd/limiter.h"
#include "smtpd/session.h"

bool limit_check_due(const struct session *, enum limit_of);
/* Is there a limit on it, or a login that may be suspended? Otherwise nobody need wait. */

void limit_check_learn(struct session *, void (*done)(struct session *, bool learnt));
/* Once a message, before it is asked: what a server of tables says of the limits of the login. It may wait. false: it could not
 * be asked, or made no sense. */

void limit_check_ask(struct session *, enum limit_of, struct limiter_question *,
		     const struct wait_kind *);
/* The session waits; the transaction has its sender. */

bool limit_check_pass(struct session *, const struct limiter_question *, const char *to,
		      bool *held);
/* The answer has come. False: it is refused, and the client told. held is set where a limit has the message
 * held. to: the recipient that it was about, or NULL. */

void limit_check_event(const struct session *, enum limiter_note, const char *login,
		       uint32_t nrcpt);
/* Tell of LIMITER_LOGGED_IN, LIMITER_ACCEPTED or LIMITER_FAILED; nothing where login is NULL. */

void limit_check_free(struct wait_answer *); /* of a question alone */

#endif
