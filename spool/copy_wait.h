/* copy_wait.h - what waits until the copy of the queue has it.
 *
 * Where clients wait for the copy, a message of theirs that is synced here waits until its barrier comes
 * back: nobody works on it before. If that takes too long it is refused, with a finish record, or taken all
 * the same where the settings say so. What no client waits for, reports and mail of the maildrop, is never
 * refused for want of a copy.
 *
 * What was taken from another node waits as long as it takes: nothing else has it afterwards.
 *
 * Where another node may adopt the queue, no message is begun before the copy says so: what this one was sending
 * is in doubt for the other then, and nothing else was sent. So while the copy is away those that are being worked on
 * go on, and no further ones begin. Where the copy is full nothing would ever leave it so: then it is noted there that any
 * message may have been begun, and deliveries go on; the log begins new segments, so that what is dead need not be sent when there is
 * room again. Where nobody adopts the queue unasked, deliveries go on as ever.
 *
 * An order of the operator is done as soon as it is synced here, and answered when the copy has it, too: else the node that
 * adopts the queue sends what was deleted or held. While the copy is away the answer says that it has not.
 *
 * OWNERSHIP  Owns the ops that wait; orders that do are dropped with the others of the operator.
 * THREAD     spool.
 * ERRORS     What waited too long is refused, or done all the same.
 * SEE        replicate.h for what is said to the keeper of the copy, and what it answers.
 */
#ifndef SPOOL_COPY_WAIT_H
#define SPOOL_COPY_WAIT_H

#include "spool/op.h"

bool copy_wait_refuses(const struct spool *);
/* Mail of clients is refused, for the copy of it would not be there in time. */

struct spool_store;
bool copy_wait_may_start(const struct spool *, const struct spool_store *);
/* The record of its start may be written with it. */

bool copy_wait_must(const struct spool *, const struct op *);

void copy_wait_add(struct spool *, struct op *);
/* The op is synced, and waits now. */

void copy_wait_ask(struct spool *); /* at the end of a batch in which some began to wait */

struct spool_command;
void copy_wait_order(struct spool *, struct spool_command *);
/* Done and synced here, it is answered when the copy has it, or is away. */
void copy_wait_ask_orders(struct spool *); /* when some of them began to wait */

void copy_wait_receive(struct spool *, struct note *);
bool copy_wait_keeps_from_ending(const struct spool *);
/* Some wait, and the copy may come. While it is away nobody knows when: clients have been told by then, and the
 * next start takes up what was to be begun. */

void copy_wait_drop(struct spool *); /* ops that wait: the program ends */

#endif
