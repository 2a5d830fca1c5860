/* ourself.h - the name and the addresses under which mail would come back to us.
 *
 * Our addresses are those that the listeners are bound to; a listener on the wildcard address
 * stands for all addresses that the machine's interfaces have when the configuration is read.
 *
 * OWNERSHIP  Whoever made it frees it. A test may fill in its own.
 * THREAD     ourself_new(): main, which may ask the kernel for addresses; then one thread.
 * ERRORS     What the system doesn't tell is not ours.
 * SEE        RFC 5321 5.1.
 */
#ifndef DNS_OURSELF_H
#define DNS_OURSELF_H

#include "base/conf.h"
#include "base/resolve.h"

#include <stdbool.h>

struct ourself {
	char *name; /* lower case; "" when unknown */
	int naddress;
	union address *address;
};

struct ourself *ourself_new(const struct conf *);
void ourself_free(struct ourself **);

bool ourself_named(const struct ourself *, const char *name);
bool ourself_at(const struct ourself *, const union address *);
/* The port doesn't matter. An IPv4 address mapped into IPv6, or as NAT64 has it there, is that IPv4 address. */

void ourself_meant(const union address *, union address *meant);
/* The IPv4 address to which a translator or a tunnel on the way takes what is sent to one of IPv6 that holds it
 * (NAT64, 6to4 and the like); any other address itself. */

enum reach { REACH_GLOBAL, REACH_PRIVATE, REACH_LOCAL, REACH_NONE };

enum reach ourself_reach(const union address *);
/* How far an address means the same host: everywhere; in somebody's network only (RFC 1918, 6598, 4193,
 * and what is set apart for tests and books); on this machine or link only (loopback, link-local);
 * nowhere, as nothing can be connected there (multicast, 0/8). It is that of the address that is meant. */

#endif
