/* indoubt.h - messages that were sent completely, and whose final reply never came.
 *
 * Such a message may have arrived. It is tried again, for it may not; but so that the doubt does not
 * grow: alone on its connection, so that nothing else breaks off with it, and on the host that has
 * it, if it has it, while that is in service, since many hosts drop what they have already taken. Who
 * has left it in doubt twice may never answer: then the best of the others has it, also one of lesser preference.
 *
 *	in doubt --> the first time, where the host has ended a connection that was of use: at once, alone
 *	         --> deferred as usual --> alone, same host first --> sent, refused, put off
 *	                                                          --> in doubt again ... after
 *	                          in_doubt_retries: returned with word that it may have arrived, or
 *	                          taken as delivered, as in_doubt_action says
 *
 * How often is counted for each recipient (struct recipient), in the queue as soon as it is known.
 *
 * THREAD     qmgr.
 * ERRORS     None.
 * SEE        RFC 5321 6.1; RFC 1047.
 */
#ifndef QMGR_DEST_INDOUBT_H
#define QMGR_DEST_INDOUBT_H

#include "qmgr/dest/site.h"
#include "qmgr/sched/job.h"

struct conn *indoubt_place(const struct site *, const struct entry *);
/* The idle connection for such an entry; NULL: none, or a better one can be had. */

struct site_host *indoubt_host_to_open(const struct site *, const struct entry *);
/* The host that is to have it, if a connection to that may be opened. NULL: any will do. */

#endif
