/* dispatch.h - a transport's delivery slots: places on ready connections, and leave to open one.
 *
 *	selection_next() --> a peer whose site has a place       --> its first entry is given there
 *	                 --> a peer whose site wants to grow
 *	                        may its message have another connection?   no --> the site is parked
 *	                        has the transport one to spare?  no --> one that has had its turn ends
 *	                        which host?                      none --> it waits
 *	                        --> the entry is granted, and a connection opened
 *
 * An entry that is granted counts as selected, but waits: it takes the first place that its site
 * has. When a connection fails before it is ready, the youngest grant is taken back.
 *
 * A message may have another connection by allowed_new_worker (share.h), with the connections that
 * the transport has to spare for free workers. One that may not still rides on places that others
 * have opened. FINCH's "free ride".
 *
 * When the transport has all the connections that it may have, and a site that wants one comes
 * first in the scheduler's order, one ends: the longest idle of a site where nothing waits, else of
 * the others one that has carried CONN_TURN messages (conn_places.h). Where none idles, since there is
 * always something in its pipeline, one that has done so gets nothing more, for a site that has no
 * connection at all (QUEUE_BARE); one that has some has its turn there.
 *
 * Before that, one that is stalled (conn.h) ends at once for such a site, and what it carries comes back: one that was told to close,
 * or of a site with others, the longest first. The only one of its site does so where nothing else can, when it is stuck, and half of
 * the transport's connections are stalled: a host that looks up each recipient elsewhere keeps its own, and a thousand tarpits have
 * half of the transport's. What a host has all of is waited for; whoever answers nothing then holds its connections for
 * data_done_timeout.
 *
 * Connections that are not ready, and have been silent for CONNECTION_SILENT_MS (base/delivery.h),
 * hold at most half of the transport's: then, or when all are in use, the one that has been silent
 * longest makes room for another site, or for a probe. A site whose hosts have never answered keeps at most
 * SITE_LIMITS_UNPROVEN of them in any case, and those beside which another host is tried: a host that
 * is a black hole takes no place from one that answers. Those that were begun only now count for nothing here: a
 * host far away takes its time, and may have as many at once as the window allows.
 *
 * A probe that is due (site_health.c) and finds all connections in use waits in transport->probing, and has
 * the next that closes: one ends for it, a silent one first, else as for a site without a connection.
 * Where probes hold all of the part that is for them, the one of them that has been silent longest ends.
 *
 * The connections of a host are those of all transports, and none is lent across them. Where it takes no more, those that idle for one
 * end for another's site, and one that has had its turn for a site without any.
 *
 * THREAD     qmgr.
 * SEE        FINCH 2007; POSTFIX SCHEDULER_README; docs/decisions/0228.
 */
#ifndef QMGR_DEST_DISPATCH_H
#define QMGR_DEST_DISPATCH_H

#include "qmgr/dest/site.h"

void dispatch_make_room(struct site *);
/* Its provider has all its connections: one of them that is idle ends, of its own transport before those of others. Where
 * none idles, one that has had its turn does, for a site that has no connection at all. */

void dispatch_make_room_at_hosts(struct site *);
/* The best of its hosts take no more connections: one of them that idles for another transport ends, as none is lent across transports.
 * Where none idles, one that has had its turn does, as with dispatch_make_room(). */

bool dispatch_one(struct transport *);
/* Use one slot. False: there is none, or nothing to use it for. */

void dispatch_trim(struct site *);
/* End what its silent hosts hold beyond that. */

void dispatch_unpark(struct transport *);
/* A message has one connection less, or the transport: let those look that may have one now. */

#endif
