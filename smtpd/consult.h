/* consult.h - a session looks something up in the tables of a role, also where a server has them.
 *
 *	consult_begin(): the first of its keys that any table of the role has, tables in their order
 *	  files		at once, and done() is called before it returns
 *	  a server	unless its answer is known the session waits (wait.h), and done() is called then
 *
 * A server is asked for the keys that are not meant for files alone: not for networks around an address,
 * and not for "*", since it may answer each key as it likes.
 *
 * OWNERSHIP  The session's; consult_free() when it ends. What was found is done()'s until it returns.
 * THREAD     The session's worker.
 * ERRORS     failed: a server could not say; nothing may be concluded from it.
 * SEE        socketmap.h, base/tables.h.
 */
#ifndef SMTPD_CONSULT_H
#define SMTPD_CONSULT_H

#include "base/tables.h"
#include "smtpd/session.h"

struct consult_found {
	const char *value; /* NULL: nothing */
	bool failed;	   /* and why is logged */
	struct table_origin origin;
};

typedef void consult_done(struct session *, const struct consult_found *);

/* Keys to look up, most specific first. */
struct consult_keys {
	int n;
	struct consult_key {
		char *text;
		bool files; /* of files alone */
	} * key;
};

void consult_keys_address(struct consult_keys *, const char *address);
/* As an envelope has it; "" is "<>". */

void consult_keys_name(struct consult_keys *, const char *name); /* of a host; without "*" */

void consult_keys_client(struct consult_keys *, const union address *, const char *name);
/* Its address, the networks around it, then its name (or NULL) and what is around that. */

void consult_keys_exact(struct consult_keys *, const char *); /* as it is */

void consult_keys_login(struct consult_keys *, const char *login); /* "login:NAME" */

void consult_keys_all(struct consult_keys *); /* adds "*" */

void consult_begin(struct session *, enum table_role, struct consult_keys *, consult_done *);
/* Takes the keys. There are tables of the role. */

void consult_among(struct session *, enum table_role, const struct conf_list *tables,
		   struct consult_keys *, consult_done *);
/* The same of these tables alone, by name, copied; one that is not there any more is a failure. */

void consult_free(struct consult **); /* NULL is allowed */

#endif
