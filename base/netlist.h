/* netlist.h - a set of networks, asked for each client.
 *
 * "10.0.0.0/8", "192.0.2.1", "2001:db8::/32", "[::1]"; no bit may be set behind the prefix. An IPv4
 * address that comes mapped into IPv6 (::ffff:192.0.2.1) is the IPv4 address.
 *
 * OWNERSHIP  netlist_fini() frees what netlist_init() made; the list of texts is not kept.
 * THREAD     Any; it never changes once it is made.
 * ERRORS     netlist_init() names the first text that is no network.
 */
#ifndef BASE_NETLIST_H
#define BASE_NETLIST_H

#include "base/conf.h"
#include "base/resolve.h"

struct net {
	unsigned char bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
	int bits;		 /* of 128 */
};

struct netlist {
	int n;
	struct net *net;
};

bool net_parse(const char *text, struct net *);
enum { NET_TEXT = 52 };

const char *net_text(const struct net *, char to[NET_TEXT]);
/* The one form of it: without a length if it is a single address. */

void net_of(const union address *, struct net *); /* of this address alone */

bool net_up(
	struct
	net *); /* the network around it, of one bit less; false: it was all addresses of its kind */

bool net_match(const struct net *, const union address *);

bool netlist_init(struct netlist *, const struct conf_list *, const char **bad);
/* False: *bad (may be NULL) is the text at fault, and the list is empty. */

void netlist_fini(struct netlist *);
bool netlist_match(const struct netlist *, const union address *);

#endif
