/* address.h - an Internet address and port, or a Unix socket, and its text.
 *
 * The union is declared in resolve.h; address_text(), address_port() and address_size() in
 * stream.h, where most need them.
 *
 * A next hop may be a Unix socket too: it has a path, no port, and is called "unix:/its/path"
 * wherever it is named, in the configuration, the log and by the operator.
 *
 * THREAD     Any.
 * ERRORS     address_parse() returns false.
 */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include "base/stream.h"

bool address_parse(const char *host, int port, union address *);
/* host is "192.0.2.1" or "2001:db8::1", without brackets. */

enum {
	ADDRESS_WHERE_MAX = 128, /* "unix:" and the longest path fit, and their NUL */
	ADDRESS_PEER_MAX = 352,	 /* a name of 200 bytes, that, brackets and a port */
};

static inline bool address_is_unix(const union address *a)
{
	return a->sa.sa_family == AF_UNIX;
}

bool address_parse_unix(const char *text, union address *);
/* "unix:/run/lmtp": an absolute path of printable ASCII, up to 107 bytes, without a blank, a bracket,
 * a quote, and any of "=,;", which would end it in a list of next hops. */

const char *address_where(const union address *, char text[ADDRESS_WHERE_MAX]);
/* "192.0.2.1", "2001:db8::1" or "unix:/run/lmtp", without the port. */

const char *address_peer(const union address *, const char *name, char text[ADDRESS_PEER_MAX]);
/* The name of a host in the log and for the operator: "name[192.0.2.1]:25", or "unix:/run/lmtp", whatever its name. */

bool address_is_loopback(const union address *);
/* 127.0.0.0/8 or ::1. */

bool address_is_unspecified(const union address *);
/* 0.0.0.0 or ::. */

void address_set_port(union address *, int port); /* a Unix socket has none */

bool address_parse_with_port(const char *text, union address *);
/* "192.0.2.1:25" or "[2001:db8::1]:25"; port 0 is allowed: any that is free. [::ffff:192.0.2.1]:25 is the former: an IPv6 socket
 * that takes no IPv4 can't be bound to it. */

void address_unmask(union address *);
/* An IPv4 address in the disguise of IPv6 (::ffff:192.0.2.1) becomes itself; others stay. */

int address_parse_sources(const char *text, union address source[2]);
/* "192.0.2.1, 2001:db8::1": how many there are, of different families, none in disguise; 0 for an empty text, -1 for
 * anything else. */

#endif
