/* SPDX-License-Identifier: ISC */
#include "base/log_forms.h"

#include <stddef.h>

#define BLAME "{stage=CONNECT} from {client=127.0.0.1}"
#define STATED "{code=550} {dsn=5.0.0}"
#define HELLO "proto={proto=SMTP} helo=<{helo}>"
#define DELIVERY(status)                                                                           \
	"{id=?}: to=<{to}>, relay={relay=none}, delay={delay=0}, delays={delays=0/0/0/0}, "        \
	"dsn={dsn=2.0.0}, status=" status " ({reply=no reply})"

const struct log_form log_forms[LOG_FORMS] = {
	[LOG_FORM_CONNECT] = {"connect", "smtpd", "connect from {client=127.0.0.1}", NULL, NULL},
	[LOG_FORM_DISCONNECT] = {"disconnect", "smtpd", "disconnect from {client=127.0.0.1}", NULL,
				 NULL},
	[LOG_FORM_REJECT_TO] = {"reject", "smtpd",
				"NOQUEUE: reject: " BLAME ": " STATED
				" <{to}>: {reason=refused}; from=<{from}> to=<{to}> " HELLO,
				NULL, NULL},
	[LOG_FORM_REJECT] = {"reject", "smtpd",
			     "NOQUEUE: reject: " BLAME ": " STATED
			     " {reason=refused}; from=<{from}> " HELLO,
			     NULL, NULL},
	[LOG_FORM_DISCARD_TO] = {"discard", "smtpd",
				 "NOQUEUE: discard: RCPT from {client=127.0.0.1}: <{to}>: "
				 "{reason}; from=<{from}> to=<{to}> " HELLO,
				 NULL, NULL},
	[LOG_FORM_DISCARD] = {"discard", "cleanup",
			      "{id=?}: milter-discard: END-OF-MESSAGE from {client=127.0.0.1}: "
			      "{reason}; from=<{from}>",
			      NULL, NULL},
	[LOG_FORM_EMPTY] = {"discard", "cleanup", "{id=?}: not kept: {reason}; from=<{from}>", NULL,
			    NULL},
	[LOG_FORM_ERRORS] = {"errors", "smtpd", "too many errors after " BLAME, NULL, NULL},
	[LOG_FORM_AUTH] = {"auth", "smtpd",
			   "warning: {client=127.0.0.1}: SASL {mechanism=?} authentication failed: "
			   "wrong name or password, sasl_username={login=(unavailable)}",
			   "result", "failed"},
	[LOG_FORM_REPORT] = {"queued", "bounce", "{report_of=?}: sender notification: {id=?}", NULL,
			     NULL},
	[LOG_FORM_PICKUP] = {"queued", "pickup", "{id=?}: uid={uid=0} from=<{from}>", "via",
			     "maildrop"},
	[LOG_FORM_LOGIN] = {"queued", "smtpd",
			    "{id=?}: client={client=127.0.0.1}, sasl_username={user}", NULL, NULL},
	[LOG_FORM_CLIENT] = {"queued", "smtpd", "{id=?}: client={client=127.0.0.1}", NULL, NULL},
	[LOG_FORM_HELD] = {"held", "smtpd",
			   "{id=?}: hold: DATA from {client=127.0.0.1}: put on hold; "
			   "from=<{from}> helo=<{helo}>",
			   NULL, NULL},
	[LOG_FORM_MESSAGE_ID] = {"queued", "cleanup", "{id=?}: message-id={message_id=<>}", NULL,
				 NULL},
	[LOG_FORM_QUEUED] = {"queued", "qmgr",
			     "{id=?}: from=<{from}>, size={size=0}, nrcpt={nrcpt=1} (queue active)",
			     NULL, NULL},
	[LOG_FORM_SENT] = {"sent", "smtp", DELIVERY("sent"), NULL, NULL},
	[LOG_FORM_DEFERRED] = {"deferred", "smtp", DELIVERY("deferred"), NULL, NULL},
	[LOG_FORM_BOUNCED] = {"bounced", "smtp", DELIVERY("bounced"), NULL, NULL},
	[LOG_FORM_IN_DOUBT] = {"in_doubt", "smtp", DELIVERY("deferred"), NULL, NULL},
	[LOG_FORM_DONE] = {"done", "qmgr", "{id=?}: removed", NULL, NULL},
};
