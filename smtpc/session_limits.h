/* session_limits.h - which recipients fit the limits that a host announces.
 *
 * OWNERSHIP  struct session_domains is embedded in the engine, and owns its names.
 * THREAD     Any; no I/O.
 * ERRORS     None.
 * SEE        RFC 9422 4.2 (RCPTMAX), 4.3 (RCPTDOMAINMAX). MAILMAX is the connection's to keep.
 */
#ifndef SMTPC_SESSION_LIMITS_H
#define SMTPC_SESSION_LIMITS_H

#include "smtpc/capability.h"
#include "smtpc/transaction.h"

/* The domains of recipients that a session has had, kept where the host limits them. */
struct session_domains {
	char **name;
	uint32_t n;
};

void session_domains_fini(struct session_domains *);

bool session_limits_fit(struct session_domains *, const struct capability *, struct transaction *);
/* Recipients that are too many for this transaction, as announced or as qmgr knows, or for this session are postponed. False: all are,
 * since the session has had all the domains that it may have. */

#endif
