/* received.h - the Received field that the relay puts in front of a message.
 *
 * Nothing of it is as the client wrote it but the name of HELO, which is a host name or an
 * address literal, and the recipient, which is an address as parsed.
 *
 * THREAD     The session's worker.
 * SEE        RFC 5321 4.4; RFC 3848; RFC 6531 4.3; RFC 8314 4.3 (TLS).
 */
#ifndef SMTPD_RECEIVED_H
#define SMTPD_RECEIVED_H

#include "smtpd/session.h"

void received_field(const struct session *, struct buf *to);

#endif
