/* report_passage.h - a report on its way from qmgr to the spool, where it is signed.
 *
 * No loop waits for it: a thread of the pool takes it through the stage, and posts it to the spool.
 *
 * OWNERSHIP  The report is given away.
 * THREAD     Any.
 * ERRORS     What can't be signed is answered as what could not be stored: qmgr makes it again later.
 */
#ifndef CMD_RELAY_REPORT_PASSAGE_H
#define CMD_RELAY_REPORT_PASSAGE_H

#include "stages/stages.h"

void report_passage(struct conf *, struct thread_pool *, struct spool *, struct spool_store *);

#endif
