/* tls_dane.h - what the TLSA records of a host demand of its certificate.
 *
 *	usage 3		this certificate or key; its names and dates do not matter
 *	usage 2		a chain that ends there, and a name: the TLSA base domain, or the next hop's
 *	usage 0, 1	not for SMTP: the record is ignored (RFC 7672 3.1.3)
 *
 *	some record is usable	one of them must match: "dane:NAMES,tlsa=ID"
 *	none is			TLS is required, and nobody is authenticated: "required" (RFC 7672 2.2)
 *
 * That text is the policy of the host (tls_policy.h): ID is a digest of the records, so that connections and
 * sessions which matched other records belong to another host. NAMES has more than the base domain only
 * if a record has usage 2.
 *
 * Of several digests OpenSSL uses the strongest (RFC 7671 9).
 *
 * OWNERSHIP  Counted; never changes.
 * THREAD     Any; the count is atomic.
 * ERRORS     A record that cannot be parsed is unusable.
 * SEE        RFC 6698 2.1, RFC 7671, RFC 7672 3; SSL_CTX_dane_enable(3).
 */
#ifndef BASE_TLS_DANE_H
#define BASE_TLS_DANE_H

#include "base/buf.h"
#include "base/resolve.h"

#include <openssl/types.h>
#include <stdatomic.h>
#include <stdbool.h>

struct tls_dane {
	atomic_int refs;
	char *names; /* that a certificate may have, with commas; the first is the TLSA base domain */
	char *base;
	int nrecord, nusable;
	struct resolve_tlsa *record; /* all of them */
	char *policy;		     /* of the host */
	char *title; /* what the site's name tells: "dane", or "dane:" and names beside the base */
};

struct tls_dane *tls_dane_new(const char *base, const char *const *hop, int nhop,
			      const struct resolve_tlsa *, int nrecord);
/* hop: the next hop, and where CNAME records led from it; those that are NULL or the same are left out.
 * Everything is copied. nrecord is at least 1. */

struct tls_dane *tls_dane_ref(struct tls_dane *); /* NULL is allowed */
void tls_dane_unref(struct tls_dane *);

bool tls_dane_usable(const struct resolve_tlsa *);

bool tls_dane_prepare(SSL *, const struct tls_dane *);
/* Before the handshake: SNI, names and records. False: OpenSSL takes none of them, so that
 * nothing can fit. */

bool tls_dane_verify(SSL *, struct buf *record, struct buf *why);
/* Once the handshake is done, of one that was prepared. Asked anew when a session was resumed. True: one
 * record fits, "3 1 1"; else why none does, for which SSL_get_verify_result() has the code. */

void tls_dane_put(struct buf *, const struct resolve_tlsa *);
/* "3 1 1 HEX", cut where it is long. */

#endif
