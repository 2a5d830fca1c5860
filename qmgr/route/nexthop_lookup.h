/* nexthop_lookup.h - from a route to hosts: questions to dns and sts, and what follows from the answers.
 *
 *	route --> relays, or the domain --+--> questions --> dns --> answers --> hosts, in groups
 *	          fallback_relay ---------+                                  --> or why there are none
 *	      --> a domain's MTA-STS -------> question ---> sts --> policy ------^
 *
 * Groups are in order: relays one after the other, those with weights side by side; in each the
 * preferences of its MX records; behind all of them fallback_relay. That helps where the destination
 * can't be found for now, not where there is none.
 *
 * A domain that has its mail hosts by MX may have an MTA-STS policy. Where that is enforced, hosts that it does not
 * have are left out (RFC 8461 5.1), but for those with TLSA records that can be used: to them it says nothing.
 *
 * Where the TLS policy of a hop asks for DANE, so is dns for TLSA records; hosts that must not get mail then, since
 * nobody knows what they must prove, or they have none and dane-only holds, are left out of the answer.
 *
 * Mail with REQUIRETLS goes only to hosts that are proven. By DANE; or by the name of the host, where that is
 * what the configuration, secure MX records or an enforced MTA-STS policy say, or the next hop itself: others are
 * left out too. Of mail with TLS-Required: No nothing is asked that the recipient's domain demands. What the operator
 * demands holds for it as well.
 *
 * OWNERSHIP  Embedded in struct nexthop. Notes that it asks with are given away; it owns the answers.
 * THREAD     qmgr.
 * STATES     idle; asking, as long as answers are outstanding; answered, until nexthop_lookup_clear().
 * ERRORS     A relay of the configuration that can't be found is not the sender's fault: 4.4.4.
 */
#ifndef QMGR_ROUTE_NEXTHOP_LOOKUP_H
#define QMGR_ROUTE_NEXTHOP_LOOKUP_H

#include "base/credential.h"
#include "base/envelope.h"
#include "base/resolve.h"
#include "base/sts_ask.h"
#include "base/tls_policy.h"
#include "base/tls_result.h"
#include "qmgr/route/route.h"

struct nexthop_lookup {
	int asking;	   /* answers outstanding */
	int nanswer, nown; /* the first nown: not of fallback_relay */
	struct nexthop_answer *answer;
	enum envelope_tls wish;
	bool heard;	     /* by name servers, for any of the answers: resolve.h */
	struct sts_ask *sts; /* the answer; NULL: it was not asked, or has not answered yet */
	enum tls_result_type fault; /* for which hosts were left out; SUCCESS: none was */
};

struct nexthop_host {
	const char *name; /* the lookup's */
	const char *hop;  /* the lookup's: the domain or relay that it is for */
	bool bracketed;	  /* no MX records were asked for */
	union address address;
	uint32_t preference; /* equal: one group; the lower 16 bits are in its hop's order */
	double weight;	     /* above 0: share of the group */
	struct credential *credential; /* the lookup's: as whom to log in; or NULL */
	struct tls_dane *dane;	       /* the lookup's: what its TLSA records demand; or NULL */
	const struct sts_policy *sts;  /* the lookup's: of its domain; or NULL */
	bool requiretls;	       /* it must hand it on so */
};

/* Where the answers go, and how questions get to dns. */
struct nexthop_edge {
	struct loop *reply_to;
	void *owner; /* of each struct resolve */
	void (*ask)(void *context, struct note *);
	void (*ask_sts)(void *context, struct note *); /* NULL: MTA-STS is not asked for */
	void *context;
	const struct tables *tables; /* credentials of next hops, for mail of this sender */
	const char *sender;
	unsigned line;	 /* of each question */
	const char *tls; /* policy of transport, route and domain; NULL: the transport's */
	bool dane;	 /* tls { dane } */
	enum envelope_tls wish;
};

bool nexthop_lookup_by_mx(const struct route *, const char *address);
/* Does mail to this address go by MX records, and not to what is set up by hand? Then MTA-STS may say
 * something of it. */

void nexthop_lookup_begin(struct nexthop_lookup *, const struct route *, const char *address,
			  const struct nexthop_edge *);
/* The look-up must be idle. */

bool nexthop_lookup_answered(struct nexthop_lookup *, struct resolve *);
/* Takes the answer. True: it was the last. */

bool nexthop_lookup_sts_answered(struct nexthop_lookup *, struct sts_ask *);
/* The same, of the question for a policy. */

struct verdict *nexthop_lookup_barred(const struct resolve_host *, enum tls_policy_dane);
/* A reference: why such a host must not get mail; NULL: it may. */

/* Once it is answered: */

struct verdict *nexthop_lookup_failure(const struct nexthop_lookup *);
/* A reference: why there is no host; NULL: there are some. */

const struct resolve *nexthop_lookup_best(const struct nexthop_lookup *);
/* The first answer that has hosts; there is one. */

const struct conf_provider *nexthop_lookup_provider(const struct nexthop_lookup *,
						    const struct conf *);
/* Whose the best hosts of a domain are; NULL: nobody's that is known, or they are those of fallback_relay. */

int nexthop_lookup_hosts(const struct nexthop_lookup *, struct nexthop_host **hosts);
/* All of them, by preference, in an array for the caller to free. */

void nexthop_lookup_clear(struct nexthop_lookup *);
/* Idle again; what is still to come is for nobody. */

#endif
