/* tls_policy.h - what a next hop must prove before it gets mail.
 *
 *	none			never TLS
 *	opportunistic		where it is offered, with whoever it is
 *	required		no mail without TLS; with whoever it is: nobody is authenticated
 *	verify[:ITEM,ITEM]	no mail unless the certificate is good, and names one of these:
 *		mx.example.com	this name, or address
 *		.example.com	any name below it
 *		nexthop		the next hop: the recipient's domain, or the relay of the configuration
 *		dot-nexthop	any name below that
 *		hostname	the host, as MX records call it: whoever forges these chooses the name
 *		sha256=HEX	no name: this certificate, or its public key, whoever has signed it
 *	dane			as opportunistic, but a host that has TLSA records must fit them
 *	dane-only		no mail for a host that has none that it fits
 *
 * verify alone is nexthop,dot-nexthop, as POSTFIX "secure": both come from the envelope or from the
 * configuration, never from DNS (RFC 7817 3). A policy is a text, so that equal ones are equal texts: of
 * transport, route and table to begin with, then of a hop (keywords of next hops replaced), then of a host
 * (hostname too).
 *
 * The strictest policy for a hop is in force. Between none and opportunistic, which demand nothing, and
 * among several of verify and dane-only, it is the most specific one.
 *
 * Where DANE applies, the demands of a host's TLSA records replace all that (tls_dane.h). It applies with
 * dane and dane-only, and unless tls { dane } is false also with opportunistic and required; not with verify, where the
 * operator says what must be proven, and not with none, which is for hosts with broken TLS.
 *
 * MTA-STS comes in as an item that nobody can write, of hosts that have no TLSA records which can be used:
 *
 *	verify:mta-sts=mx.a.test	  the policy is enforced: this name, which the policy has
 *	opportunistic:mta-sts=mx.a.test	  it is tested: the mail goes as without, what fails is counted
 *	opportunistic:mta-sts=		  likewise; the host is none of those that the policy has
 *
 * OWNERSHIP  Texts that come back are the caller's to free().
 * THREAD     Any. Pure.
 * ERRORS     False, and why. Other functions take texts that were found good.
 * SEE        RFC 7817, RFC 9525; POSTFIX TLS_README.
 */
#ifndef BASE_TLS_POLICY_H
#define BASE_TLS_POLICY_H

#include "base/conf.h"
#include "base/sts_policy.h"
#include "base/table.h"

enum tls_policy_dane {
	TLS_DANE_IGNORED,
	TLS_DANE_WANTED,   /* TLSA records hold where there are some */
	TLS_DANE_DEMANDED, /* and a host without them gets no mail */
};

enum tls_policy_dane tls_policy_dane(const char *, bool usual);
/* usual: what tls { dane } says. */

bool tls_policy_good(const char *, struct buf *why);

enum transport_tls tls_policy_level(const char *);
const char *tls_policy_items(const char *);
/* The name behind "verify:"; "" where there is none. */

bool tls_policy_trusts(const char *);
/* Does it take authorities to meet it? Fingerprints need none. */

const char *tls_policy_strictest(const char *a, const char *b);
/* Which holds of two of which the second is said nearer to the hop; NULL: nothing is. */

char *tls_policy_of_hop(const char *, const char *hop);
/* hop: a domain, a host or an IP address, without brackets and port. NULL: its words stay. */

char *tls_policy_of_host(const char *, const char *host);
/* Of one that is of a hop already, of a host without TLSA records. host "": it is none that MTA-STS would
 * have. */

char *tls_policy_add_sts(const char *of_hop, const struct sts_policy *);
/* The items that MTA-STS adds, "hostname" for the host still. Of a hop whose certificate is verified already, by the
 * configuration, nothing. NULL: the domain has no policy. */

const char *tls_policy_sts(const char *of_host);
/* The host's name for MTA-STS; "" where the policy does not have it; NULL: MTA-STS says nothing. */

char *tls_policy_with_requiretls(const char *, const char *host);
/* Of mail with REQUIRETLS (RFC 8689 4.2.1), from the policy of a host: it must be proven, and hand it on so. Where
 * the policy asks for no proof, as the host that it is called. */

bool tls_policy_has_requiretls(const char *);

char *tls_policy_row(const struct tables *, const char *hop, bool bracketed, int port,
		     struct table_origin *);
/* The policy of a hop, which may be an address literal, in the tables of tls_policy: "[hop]:port", "[hop]" where it is bracketed, "hop:port", "hop",
 * ".parent", "*", the first that there is. NULL: nothing. origin may be NULL. */

#endif
