/* snapshot.h - a summary of the scheduler: its busiest sites, its worst, and how many there are.
 *
 *	who looks -- QMGR_SNAPSHOT --> qmgr -- the same, filled in --> the loop named in reply_to
 *
 * A site is busier than another when more waits for it or is being carried to it; then when more has
 * been delivered to it; then by its name. So a site stays among them as long as no other is busier.
 * It is worse when it takes no mail, or no more (site_badness()); then when more waits for it, here and
 * in the queue; else the busier one comes first.
 * Those without TLS as their policy wants it are told apart, the worst first: their newest reply or failure speaks of that
 * (4.7.4, 4.7.5, 4.7.10, 4.7.30).
 * Domains are asked of the first SNAPSHOT_NEXTHOPS_MAX next hops, and the age of what waits of SNAPSHOT_PEERS_MAX messages at either end:
 * where there are more, those may be too few, and that too young.
 * Taking it walks all sites once: whoever looks often asks once a second (cmd/control/glance.h).
 *
 * OWNERSHIP  Given away by posting. It holds copies and references only; snapshot_free().
 * THREAD     snapshot_take(): qmgr. Else whoever holds it.
 * ERRORS     None.
 */
#ifndef QMGR_SNAPSHOT_H
#define QMGR_SNAPSHOT_H

#include "base/loop.h"
#include "base/verdict.h"
#include "qmgr/snapshot_flows.h"

#include <stdint.h>

enum {
	SNAPSHOT_SITES_MAX = 20,       /* of each kind */
	SNAPSHOT_DOMAINS = 3,	       /* named of a site */
	SNAPSHOT_NEXTHOPS_MAX = 20000, /* asked whose domain leads where */
	SNAPSHOT_PEERS_MAX =
		256, /* asked for their age, from either end of what waits for a site */
};

struct snapshot_site {
	char *key; /* tells it from others of its name: site_name.h */
	char *name, *transport;
	char *provider;	   /* or NULL */
	const char *state; /* alive, dead, out, refused, paced, limited, suspended */
	int window, connections, connecting, busy;
	int64_t waiting;   /* entries */
	int64_t deferred;  /* messages in the queue */
	int64_t verdicts;  /* on recipients, in all; while the site is remembered */
	int64_t unreached; /* connections that came to nothing, likewise */
	int64_t sent_lately, deferred_lately; /* recipients, */
	int64_t lately_ms;		      /* in so long; 0: nothing was counted of it */
	int64_t oldest_ms; /* wall clock: when the oldest of what waits came; 0: nothing waits */
	uint16_t number;   /* of the site, as the spool has it; 0: none */
	char *domain[SNAPSHOT_DOMAINS]; /* of the worst: some whose mail goes there; or NULL */
	int domains;			/* so many do, as far as it was asked */
	bool domains_seen;		/* by relays: some of their mail does */
	int64_t dead_in_ms;		/* for so long; 0: not */
	double pace;			/* deliveries a second that its hosts let through; 0: any */
	struct verdict *last;		/* the newest reply or failure, or NULL */
};

struct snapshot {
	struct note note;
	struct loop *reply_to;
	/* filled by qmgr: */
	int64_t sites, dead;				/* known, of them dead */
	int nsite;					/* in each of the two: */
	struct snapshot_site site[SNAPSHOT_SITES_MAX];	/* the busiest first */
	struct snapshot_site worst[SNAPSHOT_SITES_MAX]; /* the worst first */
	int nunproven;					/* in this one: */
	struct snapshot_site unproven[SNAPSHOT_SITES_MAX];
	struct snapshot_flows flows;
};

struct snapshot *snapshot_new(struct loop *reply_to);
void snapshot_free(struct snapshot **);

struct qmgr;
void snapshot_take(struct qmgr *, struct snapshot *);
/* Fill it in and post it back. Reads, and changes nothing. */

#endif
