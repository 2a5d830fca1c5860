/* login_try.h - one login at one host, as a delivery would make it: by smtpc itself.
 *
 *	connect, greeting, EHLO, TLS as the policy says, AUTH --> ready --> QUIT
 *
 * OWNERSHIP  login_try_fini() frees the result.
 * THREAD     Main, with a loop of its own; smtpc's threads beside it until it returns.
 * ERRORS     As the result. What the host has said never has the password in it, whatever it said.
 * SEE        base/delivery.h; smtpc/engine_auth.c.
 */
#ifndef CMD_LOCAL_LOGIN_TRY_H
#define CMD_LOCAL_LOGIN_TRY_H

#include "base/conf.h"
#include "base/credential.h"
#include "base/resolve.h"

enum login_result {
	LOGIN_DONE,    /* it lets us in */
	LOGIN_REFUSED, /* it does not, or there is no way to log in as the configuration has it */
	LOGIN_FAILED,  /* for now: out of reach, 4xx, no TLS that will do, no token */
};

struct login_try {
	enum login_result result;
	bool tls;
	char *said; /* why not, or NULL */
};

struct login_host {
	const char *name;
	const union address *address; /* with the port */
	const char *tls;	      /* the policy that it must meet */
	struct tls_dane *dane;	      /* what its TLSA records demand; or NULL */
	const struct conf_transport *transport;
};

void login_try(struct login_try *, struct conf *, struct credential *, const struct login_host *);
void login_try_fini(struct login_try *);

#endif
