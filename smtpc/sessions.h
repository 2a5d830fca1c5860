/* sessions.h - TLS sessions with hosts, kept to be resumed.
 *
 * A session belongs to the host name, port, transport, policy and source that it was made with, never to an
 * address. What that policy wants is asked again of the certificate that the session holds.
 *
 * One of TLS 1.3 is for one connection (RFC 8446 C.4), and each connection brings one or two: of these some are
 * kept for each key, so that connections side by side find one each. One of TLS 1.2 serves all.
 *
 * OWNERSHIP  Embedded in a worker; holds a reference on each session.
 * THREAD     The worker's.
 * ERRORS     None. At most SESSIONS_KEYS_MAX keys are kept; the oldest goes first.
 * SEE        RFC 8446 2.2, C.4; base/tls_verify.h.
 */
#ifndef SMTPC_SESSIONS_H
#define SMTPC_SESSIONS_H

#include <openssl/ssl.h>

enum { SESSIONS_KEYS_MAX = 2000, SESSIONS_OF_KEY_MAX = 20 };

struct session_entry;

struct sessions {
	struct session_entry *table;
};

void sessions_init(struct sessions *);
void sessions_fini(struct sessions *);

void sessions_put(struct sessions *, const char *key, SSL_SESSION *);
/* Takes the reference. */

SSL_SESSION *sessions_take(struct sessions *, const char *key);
/* The newest that can be resumed, or NULL. The reference is the caller's. */

void sessions_drop(struct sessions *, const char *key);

#endif
