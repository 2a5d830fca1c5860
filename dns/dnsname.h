/* dnsname.h - names as the DNS and people write them, and addresses in the place of names.
 *
 * A name here is text in lower case without a final dot, at most 253 bytes of letters, digits,
 * hyphens, underscores and dots: it is safe in a log, a path and a TLS handshake. The root is "".
 *
 * DIFFERS: RFC 1123 knows no underscore in a host name, but a large hoster of zones points MX
 * records at names that begin with one, so refusing it would lose mail and gain nothing.
 *
 * THREAD     Any; no state.
 * ERRORS     False, or DNSNAME_BAD; the name is then not to be used.
 * SEE        RFC 1123 2.1; RFC 5321 4.1.3 (literals); RFC 5890 (A-labels); RFC 6761 6.3.
 */
#ifndef DNS_DNSNAME_H
#define DNS_DNSNAME_H

#include "base/resolve.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DNSNAME_SIZE = 254 }; /* the longest name as text, and its NUL */

enum dnsname { DNSNAME_HOST, DNSNAME_ROOT, DNSNAME_BAD };

enum dnsname dnsname_from_wire(const uint8_t *wire, size_t size, char name[DNSNAME_SIZE]);
/* wire is an uncompressed name. What is no host name, for whatever byte in it, is DNSNAME_BAD. */

bool dnsname_from_text(const char *text, char name[DNSNAME_SIZE]);
/* From what a person typed: any case, perhaps a final dot, perhaps UTF-8. */

bool dnsname_literal(const char *text, bool bare, union address *);
/* "[192.0.2.1]", "[IPv6:2001:db8::1]", "[2001:db8::1]"; if bare, the same without brackets. */

bool dnsname_localhost(const char *name);
/* "localhost", and what ends in ".localhost". */

#endif
