/* mx.h - from MX and address answers to the hosts that mail for a domain goes to, or a verdict.
 *
 *	mx_targets(MX answer) --> names to look up --> mx_hosts(their answers) --> hosts or verdict
 *
 * Answers in, values out: no I/O, no clock; chance is a number that the caller seeds.
 *
 *	class, code, dsn       when
 *	deferred 451 4.4.3     a look-up failed, and no other host is usable
 *	failed   550 5.1.2     the domain does not exist
 *	failed   550 5.4.4     no host has an address
 *	failed   550 5.4.6     we are the best host ourselves, or all addresses are of this machine
 *	failed   556 5.1.10    null MX
 *
 * OWNERSHIP  The struct is the caller's, its members mx_fini()'s; self and chance are borrowed.
 * THREAD     One thread.
 * ERRORS     As verdicts; the caller owns them.
 * SEE        RFC 5321 5.1; RFC 7505; RFC 7504 3 (556); RFC 3463.
 */
#ifndef DNS_MX_H
#define DNS_MX_H

#include "dns/answer.h"
#include "dns/dnsname.h"
#include "dns/ourself.h"

#include <stdbool.h>
#include <stdint.h>

/* Looked up at once: more than go out as hosts, as some may have no address. */
enum { MX_TARGETS_MAX = 2 * RESOLVE_HOSTS_MAX };

struct mx_target {
	char *name;
	uint16_t preference;
	struct answer *a, *aaaa; /* NULL until they come */
};

struct mx {
	char domain[DNSNAME_SIZE];
	bool trusted; /* named in the configuration: whatever address it has is meant */
	enum resolve_security security; /* of the MX records, or of their absence */
	char *canonical; /* where CNAME records led from the domain, if there were any; or NULL */
	bool lab;	 /* allow_loopback: local addresses are other hosts */
	const struct netlist *near; /* allow_private: networks whose addresses are meant; or NULL */
	const struct ourself *self;
	uint64_t *chance;
	int ntarget, nrest;
	struct mx_target *target; /* by preference; behind ntarget the rest, for mx_next() */
};

void mx_init(struct mx *, const char *domain, const struct ourself *, uint64_t *chance);
void mx_fini(struct mx *);

struct verdict *mx_targets(struct mx *, const struct answer *);
/* Make the targets from the answer to the MX question, ourselves left out. NULL: look up the
 * addresses of them all. */

struct verdict *mx_only(struct mx *, const char *host);
/* One target: the domain itself without an MX record, or a host named in brackets. */

struct verdict *mx_hosts(struct mx *, struct resolve *to);
/* All answers are in. NULL: to->host and to->nhost are set. */

bool mx_next(struct mx *);
/* mx_hosts() found nothing usable: true, there are further targets in place of those, whose addresses are to be looked up. */

uint64_t mx_chance(uint64_t *state);
/* The next of a sequence of numbers that look random, and depend on the first state only. */

#endif
