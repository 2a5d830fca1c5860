/* cares.h - what c-ares calls differently from release to release, and nothing else.
 *
 * Debian 12 has 1.18, which takes packets and gives its servers as a list of structures; 1.34 of
 * Debian 13 calls that deprecated, takes records and gives servers as text. Each call here uses what
 * the library at hand means to keep.
 *
 * OWNERSHIP  Bytes of a reply are only lent to who is called.
 * THREAD     dns.
 * ERRORS     As c-ares' status.
 * SEE        ares_send(3), ares_send_dnsrec(3), ares_get_servers_csv(3), ares_set_servers_ports_csv(3), ares_set_socket_functions(3).
 */
#ifndef DNS_CARES_H
#define DNS_CARES_H

#include "base/resolve.h"

#include <ares.h>
#include <stddef.h>

enum { CARES_SERVERS_MAX = 16, CARES_SOCKET_BUFFER = 1 << 20 };

int cares_init(ares_channel *, struct ares_options *, int mask);
/* As ares_init_options(), and without a cache of the library's: ours is bounded and counted. A server at whose port nobody is
 * costs no question its time. */

int cares_servers(ares_channel, union address server[CARES_SERVERS_MAX]);
/* How many it would ask, and which, with their ports. */

int cares_use_servers(ares_channel, const union address *server, int n);

typedef void cares_replied(void *owner, int status, int timeouts, const unsigned char *bytes,
			   size_t len);

void cares_send(ares_channel, const void *bytes, size_t len, cares_replied *, void *owner);
/* replied is called once, with bytes where there is a reply, and may be called before this returns. timeouts: servers have let so many
 * attempts go by. */

#endif
