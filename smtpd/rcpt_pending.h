/* rcpt_pending.h - what is known of one RCPT while somebody is asked about it.
 *
 * OWNERSHIP  The transaction's (reception.h), or the question's that it is embedded in. A copy of the
 *            command, whose line is gone when the answer comes.
 * THREAD     The session's worker.
 * ERRORS     None.
 */
#ifndef SMTPD_RCPT_PENDING_H
#define SMTPD_RCPT_PENDING_H

#include "base/mailaddr.h"
#include "smtpd/param.h"

#include <stdbool.h>
#include <stdint.h>

struct rcpt_wanted {
	uint8_t notify;
	const char *orcpt;		       /* as the client has it, or */
	char orcpt_ascii[PARAM_ORCPT_MAX + 1]; /* in ASCII */
	bool postmaster;		       /* <postmaster>, without a domain */
	/* A row of recipient_access, or a limit, wants this of the message if the recipient is taken: */
	bool held;
	const char *flow; /* or NULL */
};

struct rcpt_pending {
	struct mailaddr to;
	struct rcpt_wanted wanted;
	char *orcpt, *flow; /* wanted's */
	char *asked;	    /* the address that was asked about, or NULL */
	bool verify;	    /* recipient_access wants the next hop asked */
};

void rcpt_pending_init(struct rcpt_pending *, const struct mailaddr *, const struct rcpt_wanted *);
void rcpt_pending_fini(struct rcpt_pending *);

struct rcpt_pending *rcpt_pending_new(const struct mailaddr *, const struct rcpt_wanted *);
void rcpt_pending_free(struct rcpt_pending **); /* NULL is allowed */

#endif
