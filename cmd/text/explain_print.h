/* explain_print.h - why a message or a site waits, in a sentence and as JSON.
 *
 *	what of it, and where  the constraint           when it is looked at next, and what would let it go
 *	"2 recipients for mx.test (smtp): its window of 5 connections is full; 7 deliveries come first; ..."
 *
 * Rows of the scheduler (qmgr/explain.h), or, for a message that it does not have, the row of the spool.
 *
 * THREAD     Any.
 * ERRORS     None.
 */
#ifndef CMD_TEXT_EXPLAIN_PRINT_H
#define CMD_TEXT_EXPLAIN_PRINT_H

#include "qmgr/explain.h"
#include "spool/spool.h"

void explain_print(struct buf *to, const struct explain_question *, bool json, int64_t now_ms);

struct explain_question *explain_print_asks(const struct spool_row *, struct loop *reply_to,
					    void *owner);
/* The question for the scheduler about a message of the queue before it is explained; NULL: none. */

void explain_print_spooled(struct buf *to, const struct spool_row *,
			   const struct explain_question *answered, bool json, int64_t now_ms);
/* answered: that question; or NULL. */

bool explain_print_of_suspension(const struct verdict *last);
/* The recipient was put off since the operator had suspended where it goes. NULL is allowed. */

bool explain_print_of_flow(const struct verdict *last);
/* Likewise, since the operator had suspended whose mail it is. */

void explain_print_pace(struct buf *, double rate, int64_t since_ms, bool utc);
/* "20/s, since ...", of a site's pace; nothing of a rate of 0. */

void explain_print_last(struct buf *to, const struct verdict *);
/* ": HOST said \"...\"", or nothing for NULL. */

#endif
