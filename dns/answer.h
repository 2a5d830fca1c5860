/* answer.h - parses the bytes of a reply: values, or why there are none.
 *
 * Bytes in, values out: no I/O, no clock. All that a name server sends is checked here, and only
 * here; what comes out is in order and safe to print.
 *
 *	ANSWER_RECORDS   at least one record, of the name at the end of the CNAME chain
 *	ANSWER_NODATA    the name exists without records of this type
 *	ANSWER_NXDOMAIN  the name (or the one that it is an alias of) does not exist
 *	ANSWER_ALIAS     the CNAME chain leaves the reply: ask on for a->alias
 *	ANSWER_FAILED    nothing is known: malformed, not our question, SERVFAIL, CNAME loop,
 *	                 time-out, bogus
 *
 * OWNERSHIP  Counted; answer_parse() and answer_failed() give one reference. An answer that more
 *            than one holds is not changed.
 * THREAD     One thread an answer.
 * ERRORS     ANSWER_FAILED; whoever asked for mail hosts defers with 4.4.3.
 * SEE        RFC 1035 4; RFC 2308 (negative answers); RFC 6604 (rcode and CNAME); RFC 7505.
 */
#ifndef DNS_ANSWER_H
#define DNS_ANSWER_H

#include "base/resolve.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	ANSWER_MX_MAX = 100,	 /* records kept of one answer, the best preferred of them */
	ANSWER_TLSA_MAX = 500,	 /* whichever fits may stand anywhere: more than 10 kB of them */
	ANSWER_ADDRESS_MAX = 50, /* the same for all else */
	ANSWER_CHASE_MAX = 10,	 /* CNAME records followed for one question */
};

enum answer_type {
	ANSWER_A = 1,
	ANSWER_CNAME = 5, /* not followed */
	ANSWER_MX = 15,
	ANSWER_TXT = 16,
	ANSWER_AAAA = 28,
	ANSWER_TLSA = 52,
};

enum answer_status {
	ANSWER_RECORDS,
	ANSWER_NODATA,
	ANSWER_NXDOMAIN,
	ANSWER_ALIAS,
	ANSWER_FAILED,
};

struct answer_record {
	uint16_t preference;   /* MX */
	char *target;	       /* MX: "" the root; NULL not a host name, never to be used. CNAME */
	union address address; /* A, AAAA; port 0 */
	struct resolve_tlsa tlsa; /* TLSA */
	char *txt; /* TXT: all its strings in one; what is not printable ASCII is "?" */
};

struct answer {
	int refs;
	enum answer_status status;
	char *why;			/* ANSWER_FAILED */
	enum resolve_security security; /* INDETERMINATE until whoever asked knows better */
	bool authentic;			/* the AD bit of the reply */
	bool late;			/* ANSWER_FAILED: whoever asked had to wait for it */
	bool choked;	 /* ANSWER_FAILED: the server did not understand; try without EDNS */
	int64_t ttl_ms;	 /* of the shortest-lived record used; 0 when nothing says how long */
	int chased;	 /* CNAME records followed */
	char *alias;	 /* ANSWER_ALIAS */
	char *canonical; /* the end of the CNAME chain, if there was one; or NULL */
	int nrecord;
	struct answer_record *record; /* MX: by preference */
};

bool answer_null_mx(const struct answer *); /* of an answer for MX: RFC 7505 3 */

struct answer *answer_parse(const void *bytes, size_t len, const char *name, enum answer_type);
/* The reply to the question for name, which is as dnsname.h has it. Never NULL. */

struct answer *answer_failed(const char *why);
/* why: such as "timed out"; copied. */

size_t answer_bytes(const struct answer *); /* that it takes of memory, about */

struct answer *answer_ref(struct answer *);
void answer_unref(struct answer *); /* NULL is allowed */

#endif
