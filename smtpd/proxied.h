/* proxied.h - connections from a proxy, until their PROXY header has come.
 *
 *	accepted --> [ proxied: PROXY header ] --> welcome(), with the client's own address
 *	                    +--> closed: malformed, too slow, or from somebody else than the proxies
 *
 * The header is taken from the socket alone, byte for byte: what follows, perhaps TLS, is the session's.
 *
 * OWNERSHIP  The listener's, which counts them among its connections.
 * THREAD     The worker's.
 * ERRORS     Logged as rejects at the stage PROXY; nothing is said to the peer.
 */
#ifndef SMTPD_PROXIED_H
#define SMTPD_PROXIED_H

#include "smtpd/smtpd_worker.h"

typedef void proxied_welcome(struct listener *, int fd, const union address *client);
/* Takes the socket. */

void proxied_begin(struct listener *, int fd, const union address *peer, proxied_welcome *);
/* Takes the socket, and gives it to whoever welcomes its client, if that is ever known. */

void proxied_end_all(struct listener *); /* closes them */

#endif
