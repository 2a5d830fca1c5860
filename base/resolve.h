/* resolve.h - the contract between who asks for a destination's hosts and who finds them.
 *
 *	qmgr -- RESOLVE_ASK --> [ dns ] -- RESOLVE_ANSWER --> the loop named in reply_to
 *
 * The same object goes there and comes back.
 *
 * OWNERSHIP  Given away by posting; whoever holds the answer calls resolve_free().
 * THREAD     Whoever holds it.
 * ERRORS     The answer has either hosts, or a failure: 4.4.3 for whatever may pass (SERVFAIL,
 *            time-out, refused, bogus, CNAME loop), 5.1.2 no such domain, 5.4.4 no address,
 *            5.1.10 null MX (556), 5.4.6 mail loops back to ourselves.
 * SEE        RFC 5321 5.1; RFC 7505.
 */
#ifndef BASE_RESOLVE_H
#define BASE_RESOLVE_H

#include "base/loop.h"
#include "base/verdict.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { RESOLVE_HOSTS_MAX = 20, RESOLVE_ADDRESSES_MAX = 10 }; /* a destination; a host */

enum resolve_note { RESOLVE_ASK = 200, RESOLVE_ANSWER };

enum resolve_kind {
	RESOLVE_MX,   /* mail exchangers of a domain, or its own addresses when it has none */
	RESOLVE_HOST, /* addresses of one host: a next hop in brackets, or "unix:/its/path" */
};

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un; /* of a next hop that the configuration names */
};

struct resolve_host {
	char *name;	     /* lower case, no final dot */
	uint16_t preference; /* of its MX record; 0 when there was none */
	bool secure;	     /* the address answer was validated */
	int naddress;
	union address address[RESOLVE_ADDRESSES_MAX]; /* port 0 */
};

struct resolve {
	struct note note;
	struct loop *reply_to;
	void *owner; /* the asker's own */
	int order;   /* the asker's own: which of its questions */
	enum resolve_kind kind;
	char *name; /* domain or host, lower case; or a Unix socket, as written */
	bool trusted; /* named in the configuration: loopback, ourselves and Unix sockets are allowed */
	struct verdict *failure;
	int nhost;
	struct resolve_host *host; /* by preference; hosts of equal preference in random order */
};

struct resolve *resolve_new(enum resolve_kind, const char *name, struct loop *reply_to,
			    void *owner);
void resolve_free(struct resolve **);

#endif
