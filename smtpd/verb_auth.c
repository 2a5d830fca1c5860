/* SPDX-License-Identifier: ISC */
/*	auth = "AUTH" SP sasl-mech [ SP initial-response ] CRLF	RFC 4954 4
 *
 * Where it is not offered it is a verb like any other that is not.
 */
#include "smtpd/auth.h"
#include "smtpd/command.h"

#include <string.h>

static enum response judge_command(const struct session *s, const char *argument)
{
	if (!s->service->listener->auth)
		return RESPONSE_NOT_IMPLEMENTED;
	if (s->state == SESSION_GREETED || !s->esmtp)
		return RESPONSE_HELLO_FIRST;
	if (s->state != SESSION_READY)
		return RESPONSE_IN_TRANSACTION;
	if (s->login)
		return RESPONSE_AUTH_TWICE;
	if (auth_in_clear(s))
		return RESPONSE_AUTH_IN_CLEAR;
	return *argument ? RESPONSE_OK : RESPONSE_NEEDS_ARGUMENT;
}

void verb_auth(struct session *s, char *argument)
{
	enum response why = judge_command(s, argument);
	if (why != RESPONSE_OK) {
		session_refuse(s, why, NULL);
		return;
	}
	char *initial = strchr(argument, ' ');
	if (initial)
		*initial++ = '\0';
	enum mechanism m = mechanism_find(argument);
	if (m == MECHANISM_COUNT || !auth_offered(s, m))
		session_refuse(s, RESPONSE_AUTH_MECHANISM, NULL);
	else
		auth_begin(s, m, initial);
}
