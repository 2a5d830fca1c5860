/* alias_wait.h - a session waits for servers of aliases.
 *
 *	alias_wait() --> ALIAS_KNOWN, ALIAS_FAILED
 *	             --> ALIAS_WAITS --> kind.answered(), s->tx->aliases_failed says what came of it
 *
 * THREAD     The session's worker.
 * ERRORS     As ALIAS_FAILED; the client gets RESPONSE_LOOKUP_FAILED.
 * SEE        alias_learn.h, wait.h.
 */
#ifndef SMTPD_ALIAS_WAIT_H
#define SMTPD_ALIAS_WAIT_H

#include "smtpd/alias_learn.h"
#include "smtpd/session.h"

enum alias_learnt alias_wait(struct session *, bool (*known)(void *session),
			     const struct wait_kind *);
/* There is a transaction. The kind's ended is alias_wait_ended(). */

void alias_wait_ended(struct session *);

#endif
