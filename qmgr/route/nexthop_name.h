/* nexthop_name.h - what next hops and sites are called, which decides who shares one.
 *
 * OWNERSHIP  Names that come back are the caller's to free().
 * THREAD     qmgr.
 * ERRORS     None.
 */
#ifndef QMGR_ROUTE_NEXTHOP_NAME_H
#define QMGR_ROUTE_NEXTHOP_NAME_H

#include "base/buf.h"
#include "base/resolve.h"
#include "qmgr/route/nexthop_lookup.h"
#include "qmgr/route/route.h"

#define NEXTHOP_RELAYS "relay:" /* stands before them in the key, where a domain has no such */

void nexthop_write_key(struct buf *, const struct route *, const char *address);
/* The key that tells this next hop from others: a relay is none that a domain of the same name has by MX. */

char *nexthop_logins(const struct tables *, const struct route *, const char *sender,
		     const char *address);
/* " as LOGIN,LOGIN": what key and site are called besides, so that mail which is to go as somebody has a
 * site of its own. Of relays only the logins of some senders count, since all other mail of the site goes
 * as the same; a site by its hosts must not be shared with mail that goes as nobody, or as another.
 * NULL: nothing. */

void nexthop_write_terms(struct buf *, const struct tables *, const struct route *,
			 const char *sender, const char *address);
/* The terms of its connections, for the key: port, addresses and login of ours, and policies of relays. Where a reload or
 * a table changes one, it is another next hop, which is looked up before anything goes there. tables may be NULL. */

char *nexthop_site_name(const struct route *, const char *address);
/* The site's name where it does not come from the hosts; NULL where it does. */

char *nexthop_site_relays(const struct route *);
/* For site_get(): OTHER, as site_name.h has it; NULL, by MX. */

char *nexthop_name_of_hosts(const struct resolve *);
/* "mx1,mx2;backup": two domains share a site only if they share all of it. */

char *nexthop_tls(const struct tables *, const struct route *, const char *address);
/* The TLS policy (base/tls_policy.h) of transport, route, and the table's row for the recipient's domain:
 * what the key tells besides. tables may be NULL. */

char *nexthop_tls_of_hop(const struct tables *, const char *tls, const struct nexthop_host *);
/* The same with the row for the hop of this host, in terms of that hop, and with what MTA-STS adds. */

char *nexthop_tls_of_host(const char *of_hop, const struct nexthop_host *);
/* The policy of this host: what its TLSA records demand, where they count; else that of the hop. */

void nexthop_add_tls(struct buf *name, const char *of_hop, const struct conf_transport *,
		     const char *hop);
/* The end of the site's name: " tls=POLICY", where it is not the transport's own. hop NULL: the name
 * says nothing of the hop, so that a policy in terms of it is told too. */

void nexthop_add_dane(struct buf *name, const struct tls_dane *);
/* The same for a host whose TLSA records count, whatever the transport's own is: another domain may come to
 * the same host by MX records that prove nothing. */

#endif
