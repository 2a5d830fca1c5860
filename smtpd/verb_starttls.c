/* SPDX-License-Identifier: ISC */
/*	starttls = "STARTTLS" CRLF		RFC 3207 4
 *
 * Nothing may have come behind it: VERB_LAST has seen to that, and the stream checks it again.
 */
#include "smtpd/command.h"
#include "smtpd/session.h"

void verb_starttls(struct session *s, char *argument)
{
	(void)argument;
	if (s->tls) {
		session_refuse(s, RESPONSE_TLS_TWICE, NULL);
	} else if (!s->service->tls) {
		session_refuse(s, RESPONSE_NOT_IMPLEMENTED, NULL);
	} else if (s->state == SESSION_GREETED) {
		session_refuse(s, RESPONSE_HELLO_FIRST, NULL);
	} else if (s->state != SESSION_READY) {
		session_refuse(s, RESPONSE_IN_TRANSACTION, NULL);
	} else {
		session_reply(s, RESPONSE_TLS_READY);
		session_move(s, SESSION_HANDSHAKE);
		stream_start_tls(s->stream, s->service->tls, true, NULL, NULL);
	}
}
