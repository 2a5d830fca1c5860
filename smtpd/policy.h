/* policy.h - who may send to whom.
 *
 * sluice is home to no domain: a client of a listed network, or who has logged in, may send to
 * anybody, another to nobody.
 * What an address seems to say (percent, bang, quotes, a route) plays no part: only its domain,
 * behind the last '@', ever decides where mail goes, and here not even that.
 *
 * THREAD     The session's worker.
 * ERRORS     As a reply.
 * SEE        RFC 5321 3.6.2, 4.5.1 (postmaster).
 */
#ifndef SMTPD_POLICY_H
#define SMTPD_POLICY_H

#include "base/mailaddr.h"
#include "smtpd/session.h"

bool policy_leads_here(const struct mailaddr *);
/* Is its domain an address literal of this machine, or of none? */

enum response policy_recipient(const struct session *, struct mailaddr *);
/* RESPONSE_OK, or why not; RESPONSE_LOOKUP_FAILED: servers of aliases are to be asked first (alias_wait.h). <postmaster> becomes the address that the configuration names, or that of
 * the postmaster at our hostname; where there is an alias of that name, it stays. */

bool policy_sender_due(const struct session *); /* is sender_logins to be asked? */

enum response policy_sender(const struct session *, const char *logins, struct mailaddr *);
/* May this login use it, of which sender_logins says that (NULL: nothing)? RESPONSE_OK, perhaps with
 * another in its place, or why not. */

bool policy_may_defer(const struct session *);
/* Times and priorities of its mail are its own to choose: it may relay, or log in so that it may. */

bool policy_may_schedule(const struct session *);
/* Of those, who may have its mail sent later. */

bool policy_stranger(const struct session *); /* one who may write to the postmaster only */

#endif
