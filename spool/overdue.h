/* overdue.h - deferred messages that were due when the queue was left are due when it is opened again.
 *
 * What makes a message due before its time, an order to flush it or a site that takes mail again, changes memory only.
 * Of those whose turn had not come when the program ended, a file tells the next start:
 *
 *	ID GENERATION u		u: by the operator's order; else -
 *
 * A line is believed for the generation that it names, which ends with the next attempt, and with whatever else becomes
 * of the message. So the file may stay until the next end: after a crash it is as true as it was.
 *
 * OWNERSHIP  None.
 * THREAD     spool.
 * ERRORS     Where the file can't be written or read, those messages wait for their time.
 */
#ifndef SPOOL_OVERDUE_H
#define SPOOL_OVERDUE_H

struct spool;

void overdue_keep(struct spool *);   /* at the end */
void overdue_recall(struct spool *); /* once all that was in the queue is known */

#endif
