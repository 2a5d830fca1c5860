/* access.h - what the operator's tables say of a transaction and its recipients.
 *
 *	MAIL	client_access --> helo_access --> sender_access		kept in s->tx
 *	RCPT	what they said; recipient_access			the reply
 *
 * A transaction that is refused or dropped is so at each RCPT, as with Postfix: the log then has the
 * recipient, and clients that do not understand a refusal of MAIL do of RCPT. The first table that
 * refuses or drops ends it; accept ends the look into its own setting only, hold and flow go on. Behind them a server
 * that has tables of flows is asked: files of these are looked at when the message has come (flow_name.h).
 *
 * THREAD     The session's worker.
 * ERRORS     As replies: 451 4.3.0 where a server of tables could not say, or says what is no action.
 * SEE        POSTFIX access(5), smtpd_delay_reject; base/access_value.h; consult.h.
 */
#ifndef SMTPD_ACCESS_H
#define SMTPD_ACCESS_H

#include "smtpd/consult.h"

void access_transaction(struct session *, void (*done)(struct session *));
/* Ask all that may be known before a recipient is. done(), at once or after a wait. */

bool access_refuses(const struct session *); /* no recipient will be taken, whichever it is */

bool access_admits(struct session *, const char *to);
/* As far as that goes. False: this RCPT is answered. */

bool access_recipient(struct session *, const char *to, const struct consult_found *,
		      struct access_value *);
/* The word of recipient_access about a recipient, the caller's to fini. False: it is answered. Others may refuse it yet: what
 * the word says of the message is for whoever takes the recipient. */

#endif
