/* agreement.h - do the last refusals speak of the host, whatever their words?
 *
 * What a host says to eight transactions one after the other, of different senders and to different recipients, it would say to any: a disk
 * that is full, a filter that is away. A reply that speaks of its message (a full mailbox, greylisting) never counts, nor one
 * that may be greylisting without saying so: what is said of a recipient, or of policy.
 *
 * OWNERSHIP  Embedded in struct site_pace.
 * THREAD     qmgr.
 * ERRORS     None.
 * SEE        base/reason.h, for the words.
 */
#ifndef QMGR_DEST_AGREEMENT_H
#define QMGR_DEST_AGREEMENT_H

#include "base/verdict.h"

enum { AGREEMENT_OF = 8, AGREEMENT_DIFFERENT = 5 };

struct agreement {
	int n; /* such refusals, and nothing was taken since */
	unsigned sender[AGREEMENT_OF], recipient[AGREEMENT_OF]; /* of the last: their hashes */
};

void agreement_taken(struct agreement *);

bool agreement_refused(struct agreement *, const char *sender, const char *recipient,
		       const struct verdict *);
/* True: they agree. Of one that reason_whose() is not clear about. */

#endif
