/* membership.h - whether the queue in a folder may be that of the relay which starts with it.
 *
 *	SPOOL/node has      a start under its name    under another one     without replication
 *	no epoch            yes                       yes                   yes
 *	an epoch            yes, as epoch.h says      no                    no
 *	the same, drained   yes, as epoch.h says      the queue is put aside, and an empty one begins
 *	the same, left      yes, as epoch.h says      no                    yes
 *	the same, retired   it waits, and from then on there is no epoch
 *
 * Whoever has had an epoch has a copy of its queue in NATS, and another node may adopt that at any time, under the name
 * which the queue had. Only a start under that name learns of it. What is half adopted is finished by a start with replication only.
 *
 * THREAD     Main, before the queue is opened; membership_adopts(): any.
 * ERRORS     A sentence.
 */
#ifndef REPLICA_MEMBERSHIP_H
#define REPLICA_MEMBERSHIP_H

#include "base/buf.h"
#include "base/conf.h"
#include "replica/epoch.h"

enum membership {
	MEMBERSHIP_GOES_ON,
	MEMBERSHIP_HANDED_OVER, /* the queue is to be put aside */
	MEMBERSHIP_RENAMED,	/* it is that of another name */
	MEMBERSHIP_ALONE	/* others may have it, and would not be asked */
};

enum membership membership_judge(const struct epoch_own *, const char *name);
/* name: of the node that is to start; NULL: without replication. */

bool membership_may_start(const struct conf *, struct buf *error);
/* Puts aside what was handed over. */

bool membership_would_start(const struct conf *, struct buf *why);
/* The same question, and nothing is changed. True also if the folder can't be read. */

bool membership_is_alone(const char *spool, struct buf *why);
/* No other node can have the queue, so that it may be changed without a relay. */

bool membership_leave(const char *spool, struct buf *says);
/* The operator says that no other node has the queue, or will. */

bool membership_adopts(const char *spool);
/* Another's queue is being taken into this one; or that can't be read. */

#endif
