/* recover.h - finds out what the segments of earlier runs hold.
 *
 *	spool thread                    thread of recovery
 *	recover_start() --------------> reads the older segments in order, applies each record
 *	   takes mail, a fresh segment  ...
 *	recover_merge() <- the note --- stubs in order of id; envelopes of those being worked on
 *
 * OWNERSHIP  Until recover_merge() the older segments are the other thread's.
 * THREAD     recover_start(): before the spool's thread runs. recover_wait(): main.
 *            recover_merge(): spool.
 * ERRORS     Damage is logged, kept in quarantine/, and costs no other message.
 * SEE        spool/README.md, "What can be on disk".
 */
#ifndef SPOOL_RECOVER_H
#define SPOOL_RECOVER_H

#include "spool/spool_core.h"

struct recovered;

void recover_start(struct spool *);
void recover_here(struct spool *); /* all of it, in the caller's thread, which must be alone */
void recover_wait(struct spool *); /* it is asked to end early */
void recover_merge(struct spool *, struct recovered *);

#endif
