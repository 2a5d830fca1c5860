/* client_certificate.h - logging in by a client certificate instead of a password.
 *
 * Who has shown one in the handshake has a login where the table client_certificates has its
 * fingerprint, or else where it is signed by client_ca and for the purpose of a client. A certificate
 * that says nothing harms nobody: such a client is a stranger, and may log in by AUTH.
 *
 * THREAD     The session's worker.
 * ERRORS     None.
 * SEE        RFC 8314 (submission); RFC 5280 4.2.1.6 (rfc822Name).
 */
#ifndef SMTPD_CLIENT_CERTIFICATE_H
#define SMTPD_CLIENT_CERTIFICATE_H

#include "smtpd/session.h"

char *client_certificate_login(const struct session *);
/* Behind a handshake; the caller frees. NULL: nobody. Logged and counted as a login by CERTIFICATE. */

#endif
