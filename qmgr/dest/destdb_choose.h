/* destdb_choose.h - which of a site's hosts gets the next connection.
 *
 *	unused	never connected to		chosen first, at random
 *	closed	had connections, has none	then, the one whose last connection is oldest
 *	active	has connections			then, the one with the fewest
 *	slow	was slow to connect		last, whatever else it is
 *	out	failed (host.h)			not chosen; a group that is all out is passed over
 *	retry	out, and a probe is due or under way
 *
 * DIFFERS from FINCH: a host whose time to retry has come gets no mail's connection but a probe, for
 * which no mail waits, beside whatever else serves.
 *
 * A host with an attempt that no mail waits for any more (unanswered) comes last too, and a group of
 * such hosts is passed over as long as another has one that is none. That is an attempt that had no
 * answer for connection_attempt_delay while the group has a quicker host, or for
 * backup_attempt_delay while any other has one.
 *
 * All hosts of a group at their limits: the mail waits for whichever is free first. What would wait for
 * longer than backup_attempt_delay overflows to the next group, as it would where the host that turns
 * connections away were the only one that the client knows (RFC 5321 5.1). That holds among the MX hosts of one
 * next hop: another relay, or fallback_relay, is for mail whose next hop is not in service.
 *
 * In a group with weights the host with the fewest connections for its weight is chosen, at first one
 * at random by weight: so each has its share, of the connections open at once and of those opened.
 *
 * OWNERSHIP  A site owns the array of its hosts, and has a reference on each of them.
 * THREAD     qmgr.
 * ERRORS     None.
 * SEE        FINCH 2007.
 */
#ifndef QMGR_DEST_DESTDB_CHOOSE_H
#define QMGR_DEST_DESTDB_CHOOSE_H

#include "qmgr/dest/host.h"

/* The hosts of one site, groups in order of preference. */
struct site_host {
	struct host *host;
	char *name; /* what the site's domain calls it: for SNI, certificates and the log */
	char *peer; /* name[address]:port */
	struct tls_dane *dane; /* a reference: its TLSA records, usable or not; or NULL */
	struct site *site;
	uint32_t preference; /* equal: one group; the upper 16 bits: of one next hop */
	double weight;	     /* above 0: share of the group's connections, see above */
	bool suspended;	     /* by this name: see suspend.h */
	struct list in_host; /* host->sites */
	struct list in_full; /* host->full */
};

enum destdb_choice {
	DESTDB_HOST,  /* *chosen */
	DESTDB_LATER, /* no further connection now; *wake_ms: ask again, 0: when one closes */
	DESTDB_NONE,  /* nothing is in service in any group */
};

bool site_host_out(const struct site_host *); /* it, or its host */

enum destdb_choice destdb_choose(struct site_host *hosts, int n, int64_t host_limit, int64_t now_ms,
				 bool overflow, double chance, struct site_host **chosen,
				 int64_t *wake_ms);
/* Pure. chance: 0 <= chance < 1. host_limit 0: none. overflow: where a group has no room for a
 * connection the next may have it. */

bool destdb_same_hop(const struct site_host *, const struct site_host *);
/* MX hosts of one next hop. Pure. */

int destdb_group(const struct site_host *hosts, int n, int *end);
/* The group that destdb_choose() looks at: from the result to *end; -1: none is in service. Pure. */

const char *destdb_state(const struct host *, int64_t now_ms);
/* One of those above, idle (active, and nothing carried), limited or suspended. */

#endif
