/* route_trace.h - what would happen to a message, by the configuration and DNS.
 *
 *	route_trace_new()	addresses: rewriting, access, alias, copies; a route for each recipient
 *	route_trace_ask()	hosts of each next hop, by a dns thread of its own
 *
 * The same functions as in the relay: smtpd's for addresses, qmgr's for routes, dns for hosts.
 *
 * OWNERSHIP  route_trace_free() frees all; texts of routes are copies.
 * THREAD     Main.
 * ERRORS     A refusal is part of the trace.
 */
#ifndef CMD_LOCAL_ROUTE_TRACE_H
#define CMD_LOCAL_ROUTE_TRACE_H

#include "base/access_value.h"
#include "base/envelope.h"
#include "base/resolve.h"
#include "base/tls_policy.h"
#include "qmgr/route/route.h"
#include "smtpd/response.h"
#include "smtpd/rewrite.h"

struct route_demand {	     /* who wants which TLS policy */
	char *policy;	     /* NULL: nothing is said */
	const char *setting; /* "transport", "route", "tls_policy" */
	struct table_origin origin;
};

struct route_hop {
	char *name; /* without brackets and port */
	char *tls;  /* the policy that holds, in terms of this hop */
	struct route_demand row;
	const struct route_demand *held; /* who wants that */
	char *text;			 /* as the configuration has it, or the domain */
	int port, weight;
	bool bracketed, fallback;
	enum tls_policy_dane dane;
	struct resolve *answer; /* NULL: dns was not asked, or had no time */
};

struct route_way { /* of one recipient */
	const char *recipient;
	bool copy;     /* somebody's bcc */
	bool unlisted; /* its route knows all recipients, and not this one: refused at RCPT */
	enum route_action action;
	const struct conf_transport *by;
	bool named;   /* by the route, or a relay; else a provider may choose another */
	bool of_flow; /* that of the flow, in the place of the default one */
	const struct conf_provider *provider; /* that has chosen it; or NULL */
	char *dsn, *text;
	const char *setting;
	struct table_origin origin;
	struct route_demand demand[3]; /* of transport, route, and the recipient's domain */
	int nhop;
	struct route_hop *hop;
};

struct route_trace {
	struct conf *conf;
	char *flow; /* whose mail it is; NULL: that is not known */
	struct rewrite sender, recipient;
	enum response refused; /* RESPONSE_OK: by no rewriting or alias */
	bool accessed;
	struct access_value access;
	struct table_origin access_at;
	bool aliased;
	struct table_origin alias_at;
	struct envelope *envelope; /* as it would be stored */
	uint32_t nway;
	struct route_way *way;
};

struct route_trace *route_trace_new(struct conf *, const char *sender, const char *flow,
				    const char *address);
/* flow NULL: what access, tables and the sender say. */

struct route_trace *route_trace_hop(struct conf *, const char *hop);
/* Of a next hop as it is written, with the transport and route that have it; without one, those of mail by
 * MX. NULL: it is none. */

bool route_trace_by_domain(const struct route_way *, const struct route_hop *);
/* Is it the recipient's domain, whose mail hosts are found by MX records? */

void route_trace_ask(struct route_trace *, bool dane);
/* dane: look for TLSA records too, where they would be. */

void route_trace_free(struct route_trace **);

#endif
