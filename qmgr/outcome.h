/* outcome.h - a verdict on one recipient: what is logged, counted and reported to the sender.
 *
 * THREAD     qmgr.
 */
#ifndef QMGR_OUTCOME_H
#define QMGR_OUTCOME_H

#include "base/delivery.h"
#include "qmgr/dest/site.h"
#include "qmgr/message.h"

/* Where and how long; all zero for a verdict of our own. */
struct outcome_context {
	struct site *site;		   /* or NULL */
	const struct transport *transport; /* or NULL */
	const struct delivery *delivery;   /* or NULL: no transaction took place */
	bool dsn_passed_on;		   /* the host takes part in RFC 3461 */
	bool by_passed_on;		   /* and in RFC 2852 */
	bool delivered; /* by LMTP, whose reply is that of the mailbox: RFC 2033 4.2, RFC 3464 2.3.3 */
	const struct verdict *cause; /* of a verdict of our own, the last attempt's; or NULL */
	bool untried;		     /* its site is dead: no attempt was made, none is counted */
	bool discarded; /* by the operator's order: it has gone to nobody, of whom a report could tell */
};

void outcome_apply(struct message *, uint32_t recipient, struct verdict *,
		   const struct outcome_context *);
/* Takes a reference of its own on the verdict. SENT and FAILED are final. What must be recorded is
 * for the caller: SENT at once, FAILED when the report of it is stored. */

void outcome_owe(struct message *, uint32_t recipient);
/* A recipient that came with its final verdict, but without word that the sender was told: it is not
 * tried again, only reported. */

void outcome_give_up(struct message *, uint32_t recipient, const char *dsn, const char *why);
/* The recipient is not tried again: what was deferred has failed. */

#endif
