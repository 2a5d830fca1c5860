/* reading_order.h - in which order the recipients of a large message are read.
 *
 * What is read in batches should come by domain: recipients of one domain that lie in different batches are
 * sent in transactions of their own, of a list in no order nearly one each. Domains come in the order of
 * their first recipients, and the recipients of one domain in theirs.
 *
 * OWNERSHIP  The caller frees what it gets.
 * THREAD     Any.
 * ERRORS     None.
 * SEE        POSTFIX qmgr_message.c, qmgr_message_sort, which does so within a batch.
 */
#ifndef QMGR_READING_ORDER_H
#define QMGR_READING_ORDER_H

#include "base/envelope.h"

uint32_t *reading_order(const struct envelope *);
/* The numbers of all its recipients. */

#endif
