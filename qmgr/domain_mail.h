/* domain_mail.h - the mail of one domain: where it goes, and what is done when the operator suspends it.
 *
 * OWNERSHIP  None.
 * THREAD     qmgr.
 * ERRORS     None.
 * SEE        dest/suspend.h; router.h, which puts off what comes later.
 */
#ifndef QMGR_DOMAIN_MAIL_H
#define QMGR_DOMAIN_MAIL_H

#include "qmgr/dest/site.h"

struct qmgr;

bool domain_mail_goes_to(const struct qmgr *, const char *domain, const struct site *);
/* By MX, as far as it has been looked up, or by the configuration's route; or some waits there, by the route of its
 * sender or one of before. */

void domain_mail_hold(struct qmgr *, const char *domain);
/* Mail that waits here for a connection goes back to the queue, without an attempt counted; on one it goes on. The
 * sites look again when the thread settles. */

void domain_mail_hold_entry(struct entry *);
/* The same of what came back from a connection: recipients of domains that are suspended leave it. */

#endif
