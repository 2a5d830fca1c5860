/* validators.h - validation by several threads, since a signature costs more of a processor than all else of a question.
 *
 *	dns                                          dnssec, one of a few
 *	validators_ask() -------- the name --------> [ validator ] <--> name servers
 *	validated()      <--- bytes and verdict ----
 *	     (validators_take_answer())
 *
 * Names with the same last two labels go to the same thread, which has the keys of their zones by then. Each has an equal
 * part of the memory, the sockets and the questions that one alone would have.
 *
 * OWNERSHIP  The sender owns its struct validation, which must live until validated() is called.
 *            validators_free() calls it for all that are under way, with CHANNEL_CLOSED.
 * THREAD     dns.
 * ERRORS     As those of a validator. validated() may not ask.
 * SEE        validator.h.
 */
#ifndef DNS_VALIDATORS_H
#define DNS_VALIDATORS_H

#include "dns/dns.h"
#include "dns/validator.h"

struct validation {
	void (*validated)(struct validation *, const struct validator_reply *);
	struct list link; /* the rest is the validators' own */
	struct validation_job *job;
};

struct validators;

struct validators *validators_new(struct loop *, const struct conf *, const struct trust_anchor *,
				  const union address *server, int nserver);
/* The loop is that of the thread dns, which hands notes of the type DNS_VALIDATED on to validators_take_answer().
 * Settings, anchors and servers are only lent. NULL when none can be set up, which is logged. */

void validators_free(struct validators **);
/* Not from within validated(). Waits for the threads to end, which takes milliseconds. */

void validators_ask(struct validators *, const char *name, enum answer_type, struct validation *);

void validators_take_answer(struct note *);
/* Calls validated(), unless validators_free() has. */

#endif
