/* flow_name.h - whose mail a message is: the name of its flow, decided once, when it is accepted.
 *
 * The first of these that there is:
 *	the value of the field flow_header, of who may relay
 *	what the tables flows say of the login; the sender; the client, by the smallest network
 *	the login
 *	the domain of the sender; "<>", if that is the null sender
 *
 * Where a server has one of the tables, a session asks when MAIL has come (access.c), and says what was found. Nobody is
 * asked for mail from the maildrop.
 *
 * OWNERSHIP  The result is the caller's.
 * THREAD     Any.
 * ERRORS     A field with anything but a name of a flow is logged, and as if it were not there.
 * SEE        sluice.conf(5), flow; qmgr/sched/flow.h.
 */
#ifndef SMTPD_FLOW_NAME_H
#define SMTPD_FLOW_NAME_H

#include "base/conf.h"
#include "base/resolve.h"

#include <stdint.h>

struct flow_facts {
	uint64_t id;	    /* of the message, for the log */
	const char *named;  /* what the field says; NULL: there is none, or it is a stranger's */
	const char *login;  /* or NULL */
	const char *sender; /* "": the null sender */
	const union address *client; /* or NULL */
	bool asked;		     /* what the tables say is known: servers have some of them */
	const char *row;	     /* then; NULL: nothing */
};

char *flow_name(const struct conf *, const struct flow_facts *);

#endif
