/* address.h - an Internet address and port, and its text.
 *
 * The union is declared in resolve.h; address_text(), address_port() and address_size() in
 * stream.h, where most need them.
 *
 * THREAD     Any.
 * ERRORS     address_parse() returns false.
 */
#ifndef BASE_ADDRESS_H
#define BASE_ADDRESS_H

#include "base/stream.h"

bool address_parse(const char *host, int port, union address *);
/* host is "192.0.2.1" or "2001:db8::1", without brackets. */

bool address_parse_with_port(const char *text, union address *);
/* "192.0.2.1:25" or "[2001:db8::1]:25"; port 0 is allowed: any that is free. */

void address_unmask(union address *);
/* An IPv4 address in the disguise of IPv6 (::ffff:192.0.2.1) becomes itself; others stay. */

int address_parse_sources(const char *text, union address source[2]);
/* "192.0.2.1, 2001:db8::1": how many there are, of different families; 0 for an empty text, -1 for
 * anything else. */

#endif
