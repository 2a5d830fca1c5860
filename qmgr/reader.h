/* reader.h - a message's recipients, read from its envelope in batches.
 *
 *	envelope: [ read | unread ............ ]
 *	              |       |
 *	              |       +-- a batch, as large as there is room (pool.h) --> router.h
 *	              +-- in memory until the verdict; then only that is left of it, in the envelope
 *
 * The envelope itself is whole in memory, as the spool hands it over: an address and a few bytes a
 * recipient. What is bounded is what comes on top: routing, entries, look-ups.
 *
 * The first batch is as large as message_recipient_limit leaves room for, at least
 * message_recipient_minimum; later ones as large as the slots of the message's jobs. Read is when
 * there is room for refill_limit, or for less after refill_delay, or when nothing else is left to
 * select. One that is not read at once is read by transaction (reading_order.h).
 *
 * THREAD     qmgr.
 * SEE        POSTFIX SCHEDULER_README, "Dealing with memory resource limits".
 */
#ifndef QMGR_READER_H
#define QMGR_READER_H

#include "qmgr/message.h"
#include "qmgr/sched/job.h"

void reader_begin(struct message *);
/* Count the recipients, and read the first batch. What has its final verdict already is only
 * reported. */

void reader_refill(struct job *);
/* One of its entries was selected: read on if it is time. */

bool reader_more(struct message *);
/* Nothing of it is in memory: read on. False: nothing is left to read. True, and nothing in memory:
 * there is no room; the scheduler asks again. */

void reader_feed(struct qmgr *);
/* There may be room: let the messages that wait for it read. */

void reader_drop(struct message *);
/* Nothing further is read. */

#endif
