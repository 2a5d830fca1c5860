/* auth.h - logging in: one AUTH command of a session, from its first word to 235, 4xx or 5xx.
 *
 *	AUTH --> auth_begin() --> [ sasl: users' file ] --> 334, and auth_line() for what comes
 *	                              | a password: auth_check, in the pool; WAIT
 *	                          or [ Dovecot ] --> WAIT for each answer --> 334
 *	                              +--> outcome --> 235, session->login
 *	                                           --> wrong: WAIT until failure_delay is over; 535, 421
 *
 * A wrong name and a wrong password are the same outcome: the same words, the same work, and the same
 * time, which counts from the client's last word, so that the work does not show in it.
 *
 * With Dovecot the mechanism is played there, and only passed on here. What of that is a wrong name, a
 * wrong password or a login that is disabled, is the log's to tell, not the client's.
 *
 * OWNERSHIP  The session's, while an exchange is under way. What the client said is wiped.
 * THREAD     The session's worker.
 * STATES     The session's: READY and AUTH, and WAIT from both.
 * ERRORS     As outcomes: a reply, an event auth, a count.
 * SEE        RFC 4954; RFC 4422; RFC 5248 for the enhanced codes.
 */
#ifndef SMTPD_AUTH_H
#define SMTPD_AUTH_H

#include "base/mechanism.h"
#include "smtpd/session.h"

/* O(name, in the log, reply) */
#define AUTH_OUTCOMES(O)                                                                           \
	O(OK, "ok", AUTH_OK)                                                                       \
	O(WRONG, "failed", AUTH_FAILED)                                                            \
	O(DISABLED, "disabled", AUTH_FAILED)                                                       \
	O(SUSPENDED, "suspended", AUTH_SUSPENDED)                                                  \
	O(EXPIRED, "expired", AUTH_EXPIRED)                                                        \
	O(AWAY, "unavailable", AUTH_UNAVAILABLE)                                                   \
	O(BUSY, "busy", AUTH_UNAVAILABLE)                                                          \
	O(CANCELLED, "cancelled", AUTH_CANCELLED)                                                  \
	O(MALFORMED, "malformed", AUTH_MALFORMED)                                                  \
	O(TOO_LONG, "malformed", AUTH_TOO_LONG)

enum auth_outcome {
#define O(name, ...) AUTH_OUTCOME_##name,
	AUTH_OUTCOMES(O)
#undef O
};

struct auth;

bool auth_in_clear(const struct session *); /* there is no TLS, and there should be */

bool auth_offered(const struct session *, enum mechanism);
/* By the settings, TLS and the backend. */

void auth_announce(const struct session *, struct buf *to);
/* The line of EHLO, or none, as for one who has logged in already. */

void auth_begin(struct session *, enum mechanism, const char *initial);
/* initial: in base64, "=" for an empty one, NULL for none. */

void auth_line(struct session *, const char *line, size_t len);
/* The client's next line: without CRLF, with a NUL behind. */

void auth_too_long(struct session *); /* instead of that: more than a line may have */

void auth_free(struct auth **);

#endif
