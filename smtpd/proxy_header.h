/* proxy_header.h - parses the PROXY header, version 1 and 2.
 *
 * A cursor over the bytes as they come. It takes none that is not the header's, so what follows, TLS
 * perhaps, stays for whoever reads next.
 *
 *	1: "PROXY TCP4 192.0.2.1 198.51.100.1 56324 25\r\n", TCP6, UNKNOWN; 107 bytes at most
 *	2: 12 bytes of signature, version and command, family, length, addresses, extensions
 *
 * THREAD     The worker's. Pure.
 * ERRORS     Sticky: PROXY_HEADER_BAD.
 * SEE        HAProxy, doc/proxy-protocol.txt.
 */
#ifndef SMTPD_PROXY_HEADER_H
#define SMTPD_PROXY_HEADER_H

#include "base/resolve.h"

enum proxy_header_state {
	PROXY_HEADER_MORE,
	PROXY_HEADER_CLIENT, /* there is a client, and its address */
	PROXY_HEADER_LOCAL,  /* it speaks for itself, or does not know for whom */
	PROXY_HEADER_BAD,
};

enum { PROXY_HEADER_KEPT = 108 }; /* bytes: all of version 1, all that matters of version 2 */

struct proxy_header {
	enum proxy_header_state state;
	size_t len, skip; /* bytes kept; bytes of extensions to come */
	unsigned char kept[PROXY_HEADER_KEPT];
	union address client;
};

size_t proxy_header_feed(struct proxy_header *, const unsigned char *, size_t len);
/* Zeroed at first. Returns how many of the bytes belong to the header, and may be taken away: all of
 * them while state is PROXY_HEADER_MORE. */

#endif
