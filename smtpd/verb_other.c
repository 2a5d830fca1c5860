/* SPDX-License-Identifier: ISC */
/* The verbs of one line: RSET NOOP VRFY HELP QUIT, those that are refused, and those of HTTP.
 * RFC 5321 4.1.1.5 to 4.1.1.10.
 */
#include "smtpd/command.h"
#include "smtpd/reception.h"
#include "smtpd/session.h"

void verb_rset(struct session *s, char *argument)
{
	(void)argument;
	reception_reset(s);
	session_reply(s, RESPONSE_OK);
}

void verb_noop(struct session *s, char *argument)
{
	(void)argument;
	session_reply(s, RESPONSE_OK);
}

void verb_vrfy(struct session *s, char *argument)
{
	(void)argument;
	session_reply(s, RESPONSE_CANNOT_VERIFY);
}

void verb_help(struct session *s, char *argument)
{
	(void)argument;
	session_reply(s, RESPONSE_HELP);
}

void verb_quit(struct session *s, char *argument)
{
	(void)argument;
	session_close(s, RESPONSE_BYE);
}

void verb_refused(struct session *s, char *argument)
{
	(void)argument;
	session_refuse(s, RESPONSE_NOT_IMPLEMENTED, NULL);
}

void verb_http(struct session *s, char *argument)
{
	(void)argument;
	session_close(s, RESPONSE_NOT_SMTP);
}
