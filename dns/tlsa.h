/* tlsa.h - which TLSA records count for a host.
 *
 *	its addresses are     its name is an alias   asked
 *	secure                no                     TLSA at its name
 *	secure                yes                    TLSA where the alias leads, and if there is none at its name
 *	insecure              yes, itself secure     TLSA at its name
 *	else                                         nothing: there are none that count
 *
 * The first name that has secure records decides: it is the TLSA base domain. A question without an answer
 * (SERVFAIL, time-out, bogus) ends it: resolve_host.unsure, since whoever can suppress answers must not be able
 * to talk us out of TLS (RFC 7672 2.2).
 *
 * OWNERSHIP  Embedded in a lookup; the host and the names of the next hop are borrowed.
 * THREAD     dns.
 * ERRORS     As host->unsure.
 * SEE        RFC 7672 2.2.2, 2.2.3; base/tls_dane.h.
 */
#ifndef DNS_TLSA_H
#define DNS_TLSA_H

#include "dns/question.h"

enum { TLSA_HOP_NAMES = 2 };

struct tlsa_search {
	struct asker asker;
	struct questions *questions;
	struct resolve_host *host;
	int port;
	const char *hop
		[TLSA_HOP_NAMES]; /* the next hop, and where CNAME records led from it; or NULL */
	const char *at;		  /* the name that is asked for */
	void (*found)(void *owner);
	void *owner;
};

bool tlsa_search_begin(struct tlsa_search *);
/* questions, host, port, hop, found and owner are set. False: there is nothing to ask, and found() is not
 * called. */

void tlsa_search_withdraw(struct tlsa_search *);

#endif
