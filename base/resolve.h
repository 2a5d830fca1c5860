/* resolve.h - the contract between qmgr and dns: which hosts has a destination?
 *
 *	qmgr -- RESOLVE_ASK --> [ dns ] -- RESOLVE_ANSWER --> the loop named in reply_to
 *
 * The same object goes there and comes back.
 *
 * OWNERSHIP  Given away by posting; whoever holds the answer calls resolve_free().
 * THREAD     Whoever holds it.
 * ERRORS     The answer has either hosts, or a failure: 4.4.3 for whatever may pass (SERVFAIL,
 *            time-out, refused, bogus, CNAME loop), 5.1.2 no such domain, 5.4.4 no address,
 *            5.1.10 null MX (556), 5.4.6 mail loops back to ourselves. RESOLVE_TLSA, RESOLVE_ALIAS and
 *            RESOLVE_TXT fail by 4.4.3 only; the absence of a record is an answer.
 * SEE        RFC 5321 5.1; RFC 7505; RFC 4033 5 (security); RFC 7672 (TLSA).
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

enum resolve_note { RESOLVE_ASK = NOTES_FROM(NOTES_OF_RESOLVE), RESOLVE_ANSWER };

enum resolve_kind {
	RESOLVE_MX,    /* mail exchangers of a domain, or its own addresses when it has none */
	RESOLVE_HOST,  /* addresses of one host: a next hop in brackets, or "unix:/its/path" */
	RESOLVE_TLSA,  /* TLSA records for a host and port; there may be none (RFC 7672 2.2) */
	RESOLVE_ALIAS, /* the CNAME record of a host, not followed; there may be none */
	RESOLVE_TXT,   /* TXT records of a name; there may be none */
};

/* DNSSEC's verdict on an answer, and of an answer that there is nothing. Weakest first, but bogus: that
 * is never an answer, only the reason of a failure. */
enum resolve_security {
	RESOLVE_INDETERMINATE, /* not known: nothing was validated */
	RESOLVE_INSECURE,      /* proven that it lies in an unsigned zone */
	RESOLVE_SECURE,	       /* validated from the root, all records that led to it included */
	RESOLVE_BOGUS,	       /* ought to be signed, and is not, or falsely */
};

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un; /* of a next hop that the configuration names */
};

struct tls_dane;

struct resolve_host {
	char *name;			/* lower case, no final dot */
	uint16_t preference;		/* of its MX record; 0 when there was none */
	enum resolve_security security; /* of its addresses, and the CNAME records that led there */
	char *canonical; /* where CNAME records led, if there were any (RFC 7672 2.2.2); or NULL */
	int naddress;
	union address address[RESOLVE_ADDRESSES_MAX]; /* port 0 */
	/* where resolve.dane is set: */
	struct tls_dane *dane;	/* what its TLSA records demand; NULL: there are none that count */
	struct verdict *unsure; /* whether there are any can't be found out, so that it must not get
				   mail that asks for them; or NULL */
};

struct resolve_tlsa {
	uint8_t usage, selector, matching; /* RFC 6698 2.1 */
	size_t len;
	uint8_t *data;
};

struct resolve {
	struct note note;
	struct loop *reply_to;
	void *owner; /* the asker's own */
	int order;   /* the asker's own: which of its questions */
	enum resolve_kind kind;
	char *name; /* domain or host, lower case; or a Unix socket, as written */
	unsigned
		line; /* whose question it is: those of one line are asked in their order, and lines take turns */
	bool known; /* RESOLVE_MX: nobody is asked. Failed, 5.1.2 or 5.1.10, if the cache has that; else nothing */
	bool trusted; /* named in the configuration: loopback, ourselves and Unix sockets are allowed */
	bool dane; /* RESOLVE_MX, RESOLVE_HOST: look for the TLSA records of each host, too */
	int port;  /* RESOLVE_TLSA, and dane: TCP */
	bool heard; /* a name server had an answer to something of it: not only the cache, or nobody */
	struct verdict *failure;
	enum resolve_security
		security; /* of the answer to the question itself: the MX records, or that
					   there are none; the addresses; the TLSA or CNAME record */
	int nhost;
	struct resolve_host *host; /* by preference; hosts of equal preference in random order */
	int ntlsa;
	struct resolve_tlsa *tlsa;
	char *alias; /* RESOLVE_ALIAS: where it leads; or NULL */
	int ntxt;
	char **txt; /* RESOLVE_TXT: the strings of each record in one, printable ASCII */
};

struct resolve *resolve_new(enum resolve_kind, const char *name, struct loop *reply_to,
			    void *owner);
void resolve_free(struct resolve **);
void resolve_host_fini(struct resolve_host *); /* of one that is to be left out */

void resolve_drop_host(struct resolve *, int host);
/* The answer goes without it. */

enum resolve_security resolve_weaker(enum resolve_security, enum resolve_security);
/* Of two links of a chain. Neither is bogus. */

const char *resolve_security_text(enum resolve_security);

#endif
