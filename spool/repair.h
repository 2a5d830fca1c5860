/* repair.h - repairs a queue while no relay is running.
 *
 *	check --> nothing wrong: that is all
 *	      --> recovery, as at a start: what is damaged goes to quarantine/
 *	      --> what is needed of the segments with faults moves to a fresh one, and they go
 *	      --> check once more: what is left
 *
 * OWNERSHIP  As spool_check.h.
 * THREAD     All in the caller's.
 * ERRORS     False, with a sentence in error, when it can't be done at all. What is left wrong is a
 *            finding.
 */
#ifndef SPOOL_REPAIR_H
#define SPOOL_REPAIR_H

#include "spool/spool_check.h"

bool spool_repair(struct conf *, struct check *, struct buf *error);
/* found() gets what was wrong, and then, marked so, what is left of it. */

#endif
