/* route.h - the room of routes: which transport carries a recipient, and to what next hops.
 *
 *	address --> route --> transport, next hops --> questions to dns --> hosts, or why there are none
 *
 *	route.c		recipient -> transport and next hops, most specific route first (pure)
 *	nexthop_lookup.c  next hops -> hosts: what dns is asked, and what its answers come to
 *	source_choice.c	which source a flow has today (pure)
 *	nexthop_name.c	what next hops and sites are called, which decides who shares one (pure)
 *
 * It knows nobody: an address in, hosts out. Included by qmgr/; includes base/ alone.
 *
 * The most specific route wins: full address, domain, parent ".domain" (the longest first), "*". Of
 * routes as specific, a section of the configuration comes before the tables, and those in the order
 * of their files. A section with "from" is there for its senders only.
 *
 *	recipient's route, unless it is only "*" --> sender_routes --> "*" --> smtp, by MX
 *
 * POSTFIX sender_dependent_relayhost_maps likewise takes the place of the relay for all mail, and not
 * of a route that a recipient has.
 *
 * OWNERSHIP  The table refers to a struct conf that must outlive it. A route that was found is good
 *            until the next is looked for: one of a table's row is kept only as long as there is room.
 * THREAD     qmgr; or whoever made the table.
 * ERRORS     None: there is always a route "*".
 */
#ifndef QMGR_ROUTE_ROUTE_H
#define QMGR_ROUTE_ROUTE_H

#include "base/conf.h"
#include "base/route_value.h"
#include "base/table.h"

struct route_table;

struct route {
	enum route_action action;
	bool verify; /* recipients are asked about before they are accepted */
	const struct conf_list
		*recipients; /* tables of all that there are; NULL: that is not known */
	const struct conf_transport *by;
	bool named;		       /* by is, or a relay: it goes before what a provider wants */
	const char *tls;	       /* a policy; NULL: none of its own */
	const struct conf_list *relay; /* as conf_relay_read() takes them; none: by MX */
	const char *dsn, *text;	       /* ERROR; DISCARD: text */
	const char *setting;	       /* "route", "routes", "sender_routes" */
	struct table_origin origin;
};

struct route_table *route_table_new(const struct conf *);
void route_table_free(struct route_table **);

const struct conf_transport *route_transport(const struct conf *, const char *title);
/* The one that a row of a table names; NULL: it names none, and the first carries it. */

const struct route *route_find(struct route_table *, const char *sender, const char *address);
/* Both as an envelope keeps them: local part as given, domain in lower case. */

const struct route *route_find_of_flow(struct route_table *, const struct conf_flow *,
				       const char *sender, const char *address);
/* Where it names no transport but the default one, that of the flow carries it, whatever a provider wants. The flow is
 * of the table's configuration. */

#endif
