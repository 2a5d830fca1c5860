/* verify_check.h - a session asks what is known against a recipient, and whether the next hop takes it.
 *
 * What is asked about is what the recipient is rewritten to. One that is an alias is not asked about:
 * it is known here. What servers say of aliases was heard before.
 *
 * THREAD     The session's worker.
 * ERRORS     As a reply.
 * SEE        base/verification.h; the section verify of the configuration.
 */
#ifndef SMTPD_VERIFY_CHECK_H
#define SMTPD_VERIFY_CHECK_H

#include "base/verification.h"
#include "smtpd/consult.h"
#include "smtpd/session.h"

char *verify_check_address(const struct session *, const char *recipient, bool wanted);
/* Whom to ask about, the caller's to free. wanted: recipient_access says verify; else only where a
 * route may say that or refuse it, or there is a hint (base/hint.h). NULL: nobody need be asked. */

/* How it waits: for what is sure to be answered, without a deadline; or for a next hop. */
struct verify_check_kinds {
	const struct wait_kind *known, *of_host;
};

void verify_check_ask(struct session *, const char *address, bool wanted, bool listed,
		      const struct verify_check_kinds *);
/* The session waits, for no longer than verify.timeout where a next hop may be asked. The answer is a struct verify.
 * listed: the servers of recipients of its route have it. */

bool verify_check_listed(struct session *, const struct consult_found *, const char *to);
/* Answers of the servers of a struct verify that is UNLISTED. False: it is refused, and the client told. */

bool verify_check_pass(struct session *, const struct verify *, const char *to);
/* NULL: there was none in time. False: it is refused, and the client told. */

#endif
