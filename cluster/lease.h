/* lease.h - connections to one host that this node may have, of a number that all nodes share.
 *
 *	the holder tells: limit, hold, want --> lease_ask() --> the script, in Redis --> lease_answered()
 *	                                                                                       |
 *	the holder is told: allowed, fair, others <-- lease_offer() <--------------------------+
 *
 * The script keeps for each node how many it holds and wants, and until when. It gives what is wanted as long as
 * all together are within the limit, but no node more than its fair part while others want some too: as
 * much for each as can be. Where there is not one for each, one is for whoever asks first while there are any left,
 * unless it has just given one back; who has had its turn is told to give back, whose turn it is asks more often, and
 * none is kept idle. It takes nothing away: who has more than its part is told so, and comes down as its connections
 * end.
 *
 * Looking at all rows takes as long as there are nodes. So where there are many a sum of them lies beside them (fields
 * "\1" and "\2"), and is made anew five times a second: what all hold is right in it at any time, and what is fair, and
 * who is dead, as it was then.
 *
 * What a node holds stands for LEASE_TTL_MS after the last answer, and is renewed each LEASE_RENEW_MS. So that
 * all together never have more when Redis is away, a node that hears nothing first comes down to its part, limit /
 * nodes, and goes up to it only when the leases of all others have expired. One connection it may have at once,
 * if it has not just been told that there is none: mail waits for no engine. When Redis is back, and may have
 * forgotten everything, nobody goes beyond its part before all had the time to say what they have. Where it has
 * forgotten everything and was never away (FLUSHALL), its data are young: until they are LEASE_SETTLE_MS old nobody
 * gets more than it has, but for its first one. So are those of one host where somebody has some that Redis knows
 * nothing of (it was short of memory, or somebody has removed them): field "\3" says since when.
 *
 * An offer and what the holder tells may cross: what was offered counts as held until the holder, having
 * heard of it, says otherwise.
 *
 * Numbers in, numbers out: no clock, no I/O.
 *
 * OWNERSHIP  Embedded, in the cluster's table and in the simulation's.
 * THREAD     The cluster's.
 * ERRORS     None; misuse asserts.
 * SEE        base/sharing.h.
 */
#ifndef CLUSTER_LEASE_H
#define CLUSTER_LEASE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	LEASE_TTL_MS = 3000,
	LEASE_RENEW_MS = 1000,
	LEASE_TURN_MS = 10000,	/* who has one where there is not one for each, has it so long */
	LEASE_SETTLE_MS = 2000, /* all have said what they have when Redis is back so long */
	LEASE_SCAN_MS = 200,	/* with more rows than that, all of them are looked at so often, */
	LEASE_SCAN_ROWS = 16,
	LEASE_AGAIN_MS = 100, /* who wants more asks again, */
	LEASE_REST_MS = 500,  /* or so much later, who has had his turn, */
	LEASE_EACH_MS = 5,    /* where many want some so much later for each of them */
};

struct lease {
	int64_t limit, hold, want;     /* as the holder has told, or was offered, last */
	int64_t fair, others, wanting; /* as the script has said */
	int64_t kept;		       /* what the script has of this node, as far as is known */
	bool unmet;		       /* it had not all that was wanted */
	bool asked;		       /* an ask is under way */
	int64_t answered_ms;	       /* steady clock; 0: never */
	int64_t due_ms;		       /* steady clock: the next ask */
	uint64_t offers;	       /* how often it was raised */
	uint64_t offered;	       /* the last that was offered */
	int64_t advised, said;	       /* fair and others in it */
	bool scarce;		       /* likewise */
};

/* The arguments of the script; the node's name and the times and numbers below come on top. */
struct lease_ask {
	int64_t limit, hold, want;
};

struct lease_answer {
	int64_t granted, fair, others, wanting;
};

struct lease_offer {
	uint64_t number;
	int64_t allowed, fair, others;
	bool scarce;
};

/* The node's knowledge of its cluster. */
struct lease_view {
	int64_t nodes;	  /* seen last, at least 1 */
	bool away;	  /* Redis does not answer */
	int64_t since_ms; /* steady clock: it is away, or back, since then */
	int64_t now_ms;	  /* steady clock */
};

void lease_tell(struct lease *, int64_t limit, int64_t hold, int64_t want, uint64_t heard,
		int64_t now_ms);
/* The holder's word; heard: the number of the last offer that it has got. */

bool lease_ask(struct lease *, const struct lease_view *, struct lease_ask *);
/* True: this is to be asked now. Until the answer, or lease_missed(), nothing else is. */

void lease_answered(struct lease *, const struct lease_answer *, int64_t now_ms);
void lease_missed(struct lease *, int64_t now_ms); /* no answer comes */

bool lease_offer(struct lease *, const struct lease_view *, struct lease_offer *);
/* True: this is news for the holder. */

bool lease_over(const struct lease *); /* nothing is held, wanted or asked: it may be forgotten */

extern const char lease_script[];
/* KEYS: of the host, since (link.h). ARGV: node, limit, hold, want, LEASE_TTL_MS, LEASE_TURN_MS, LEASE_SCAN_MS, LEASE_SCAN_ROWS,
 * LEASE_SETTLE_MS. Returns granted, fair, others, wanting. What makes no sense under its key is removed. */

#endif
