/* flow_mail.h - the mail of a flow that the operator has suspended, or resumed.
 *
 *	suspended --> what comes of it goes back to the queue, untried, with that reason
 *	          --> what waits in memory likewise; what is on a connection comes to its end
 *	resumed   --> what waits in the queue is due: asked for in pages, since the spool does not know flows
 *
 * Likewise that of sites and hosts, where they were suspended before this start: the spool does not know after it what
 * is parked for which, but each message says why it waits.
 *
 * OWNERSHIP  A release under way is qmgr's.
 * THREAD     qmgr.
 * SEE        qmgr/dest/suspend.h, which keeps the names.
 */
#ifndef QMGR_FLOW_MAIL_H
#define QMGR_FLOW_MAIL_H

#include "qmgr/message.h"

void flow_mail_stop(struct qmgr *, const char *flow);
/* The flow has been suspended. */

void flow_mail_release(struct qmgr *, const char *flow);
/* The flow is suspended no more; NULL: a site or host. Mail for others that are, returns to the queue untried. */

void flow_mail_listed(struct qmgr *, struct spool_command *);
/* The spool has answered one of our lists. Frees it. */

void flow_mail_drop_releases(struct qmgr *);

#endif
