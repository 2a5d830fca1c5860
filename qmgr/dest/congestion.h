/* congestion.h - warnings about an active queue that fills up, and what to do about it.
 *
 * When eight tenths of message_active_limit are in use: which destination holds most of that, if one
 * does, what keeps its mail, and the strategy that helps; at most once in five minutes.
 *
 * THREAD     qmgr.
 * ERRORS     None.
 * SEE        POSTFIX QSHAPE_README, "High volume destination backlog"; POSTFIX qmgr_message.c.
 */
#ifndef QMGR_DEST_CONGESTION_H
#define QMGR_DEST_CONGESTION_H

#include "qmgr/dest/destdb.h"

void congestion_look(struct destdb *);

void congestion_count(const struct destdb *);
/* How many sites each limit holds back, for /metrics. */

#endif
