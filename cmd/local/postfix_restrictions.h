/* postfix_restrictions.h - the lists of restrictions of a main.cf: what they are here.
 *
 *	check_client_access hash:/etc/postfix/clients	client_access = { "/etc/postfix/clients" }
 *	permit_mynetworks, reject_unauth_destination	nothing: it is always so
 *	reject_rbl_client, check_policy_service		a note: a filter's job
 *
 * Tables keep their order, through all lists in the order in which Postfix looks at these. What comes
 * behind permit_mynetworks there is for strangers alone, and here for all: that is said.
 *
 * OWNERSHIP  The lists' items are the caller's.
 * THREAD     Any.
 * ERRORS     As what is told.
 * SEE        POSTFIX postconf(5), smtpd_recipient_restrictions; access(5).
 */
#ifndef CMD_LOCAL_POSTFIX_RESTRICTIONS_H
#define CMD_LOCAL_POSTFIX_RESTRICTIONS_H

#include "base/conf.h"
#include "cmd/local/postfix_conf.h"

enum restricted {
	RESTRICTED_CLIENT,
	RESTRICTED_HELO,
	RESTRICTED_SENDER,
	RESTRICTED_RECIPIENT,
	RESTRICTED_KINDS
};

struct postfix_restrictions {
	struct conf_list access[RESTRICTED_KINDS]; /* client_access, helo_access ... */
};

const char *postfix_restrictions_setting(enum restricted); /* "client_access" */

void postfix_restrictions_read(const struct postfix_conf *, struct postfix_restrictions *,
			       void (*tell)(void *context, const struct postfix_setting *,
					    const char *restriction, const char *text),
			       void *context);
/* The settings are taken. tell() has what is to be looked at. */

#endif
