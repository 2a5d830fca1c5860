/* facts.h - what is known about hosts, in Redis: a hash a host, and a channel.
 *
 *	FACT_SEEN --> script: newer parts into the hash, and PUBLISH --> all nodes' FACT_HEARD
 *	ready -----> SCAN, HGETALL --> FACT_HEARD of all there are; FACT_TELL: qmgr says what it knows
 *	FACT_PROBE -> script: a key with an expiry, if there is none --> FACT_LEAVE
 *
 *	PREFIX host:KEY		key, health, speed, limit, pipeline, plain, doubts:NODE; gone after a day
 *	PREFIX probe:KEY	the node that probes it now; gone soon after that has told, or after half a minute
 *	PREFIX facts		the channel
 *
 * What is told while Redis is away is dropped: qmgr has it, and tells all when Redis is back. Permission to probe is
 * given at once then: each node probes by itself.
 *
 * OWNERSHIP  One of a cluster. Takes the notes that it is given.
 * THREAD     cluster's.
 * ERRORS     What makes no sense in Redis is passed over; a key of ours that is no hash is replaced, and a probe without an end
 *            is taken.
 */
#ifndef CLUSTER_FACTS_H
#define CLUSTER_FACTS_H

#include "base/fact.h"
#include "cluster/link.h"
#include "cluster/nodes.h"

struct facts;

struct facts *facts_new(struct link *, const char *node, const struct nodes *seen,
			struct loop *qmgr);
/* seen: how many there are; each has its part of what may be under way. */

void facts_free(struct facts **); /* after the link */

void facts_seen(struct facts *, struct fact *);
void facts_probe(struct facts *, struct fact_probe *);

extern const char facts_script[];
/* KEYS: the hash, the probe. ARGV: node, kept for so long, channel, key, doubts, and part, stamp, text of each part.
 * Returns how many fields are new; -1: some are from a clock that is more than a minute ahead of Redis', and were dropped. */

extern const char facts_probe_script[];
/* KEYS: the probe. ARGV: node, for so long. Returns 1: it is this node's; 0: another has it. */

#endif
