/* credential.h - the login for a next hop: a row of the tables in `credentials`.
 *
 *	[smtp.example.net]:587                    relay@example.org  password:/etc/sluice/relay.pass
 *	smtp.example.com    sales@example.org     sales@example.org  refresh:/etc/sluice/sales.oauth
 *	unix:/run/lmtp                            relay              token:/run/relay.token
 *	[10.0.0.6]                                relay              password:/etc/sluice/own.pass  unauthenticated
 *	[10.0.0.5]                                relay              password:/etc/sluice/old.pass  clear
 *
 * NEXT-HOP [SENDER] LOGIN SECRET [unauthenticated | clear]. The next hop is written as in a route, with or without its port,
 * or is the bare name of a host; for delivery by MX it is the recipient's domain. The key of a row is its
 * next hop, followed by a blank and the sender if it has one.
 *
 *	credential_find(): for the sender's address, its domain, its parents, and then for all senders:
 *			   "[host]:port", "[host]", "host", the first of these that has a row
 *
 * A row names the file of its secret; the secret itself is never in here. It goes to nobody who has not proven to
 * be the next hop, by its certificate or by DANE: unauthenticated waives the proof, and clear TLS altogether.
 *
 * OWNERSHIP  Counted; never changes.
 * THREAD     Any; the count is atomic.
 * ERRORS     credential_parse() says what is wrong.
 * SEE        sluice.conf(5), "Logging in at next hops"; RFC 4954.
 */
#ifndef BASE_CREDENTIAL_H
#define BASE_CREDENTIAL_H

#include "base/buf.h"

#include <stdatomic.h>
#include <stdbool.h>

struct tables;

enum credential_kind {
	CREDENTIAL_PASSWORD, /* the file's first line is a password */
	CREDENTIAL_TOKEN,    /* an OAuth access token, which something else renews */
	CREDENTIAL_REFRESH,  /* the file says how an access token is fetched: smtpc/token.h */
};

struct credential {
	atomic_int refs;
	enum credential_kind kind;
	char *login, *file;
	char *hop; /* the host or domain that it was found for, without port and brackets; or NULL */
	char *next_hop; /* the same as it was looked up, in lower case: "[host]:port" */
	bool clear;	/* may be used without TLS */
	bool unproven;	/* may be used with whoever it is; where clear too */
	bool of_sender; /* of some senders only */
	char *id;	/* "LOGIN KIND:FILE WORD HOP", which tells it from others */
};

const char *credential_parse(const char *value, struct credential **, struct buf *why);
/* Check the value behind the key. NULL: good, and a reference, unless none is wanted. Else where it is not. */

bool credential_has_sender(const char *value);
/* Does the first word of what stands behind the next hop belong to the key? */

struct credential *credential_find(const struct tables *, const char *hop, const char *sender);
/* hop as conf_relay_read() takes it, or a domain. A reference; NULL: none, as when there are no tables. */

struct credential *credential_ref(struct credential *);
void credential_unref(struct credential *); /* NULL is allowed */

#endif
