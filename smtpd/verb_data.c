/* SPDX-License-Identifier: ISC */
/*	data = "DATA" CRLF		RFC 5321 4.1.1.4 */
#include "smtpd/command.h"
#include "smtpd/filtering.h"
#include "smtpd/reception.h"

static void heard_filters(struct session *s, bool passed)
{
	if (passed) {
		session_reply(s, RESPONSE_SEND_CONTENT);
		session_move(s, SESSION_DATA);
		reception_begin(s, true);
	} else if (s->state != SESSION_CLOSED) {
		reception_reset(s);
	}
}

void verb_data(struct session *s, char *argument)
{
	(void)argument;
	if (s->state == SESSION_MAIL) {
		session_refuse(s, RESPONSE_NO_RECIPIENTS, NULL);
		return;
	}
	const enum response room = reception_room(s);
	if (room != RESPONSE_OK) {
		session_refuse(s, room, NULL);
		reception_reset(s);
		return;
	}
	reception_name(s->tx);
	filtering_data(s, heard_filters);
}
