/* delivered.h - deliveries that came back from connections: recorded and counted for dest/.
 *
 * A verdict in doubt (indoubt.h) is counted for its recipient, and is final once that was too often. Where the host has ended a connection
 * on which it had answered others, the recipient stays in its entry the first time, and is tried again at once.
 *
 * THREAD     qmgr.
 * ERRORS     None.
 * SEE        destdb.h, struct destdb_thread.
 */
#ifndef QMGR_DELIVERED_H
#define QMGR_DELIVERED_H

#include "qmgr/dest/conn.h"

void delivered_take(struct conn *, struct entry *, struct delivery *);
/* A verdict on what was done, or may have been, is on its way to the spool before anything else happens to the
 * message; where that is the end of it, with its release, as whoever calls this checks it then. Recipients that have no
 * verdict stay in the entry. */

void delivered_defer(struct site *, struct entry *, struct verdict *why, bool untried);
/* All of it has this verdict, without a delivery. */

void delivered_record(struct site *, struct entry *, struct verdict *const *verdict);
/* One verdict for each recipient of an entry that was bound early (early.h). In doubt is put off like any
 * other there: Postfix doesn't count it. */

#endif
