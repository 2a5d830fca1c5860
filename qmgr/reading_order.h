/* reading_order.h - in which order the recipients of a large message are read.
 *
 * What is read in batches should come by transaction: recipients of one domain that lie in different batches
 * are sent in transactions of their own, of a list in no order nearly one each. But a batch should not be of
 * one domain only, while others have nothing to do. So as many recipients of a domain come together as fit
 * into one transaction, where the first of them stands: of each domain as many in a batch as its part is.
 *
 * OWNERSHIP  The caller frees what it gets.
 * THREAD     Any.
 * ERRORS     None.
 * SEE        POSTFIX qmgr_message.c, qmgr_message_sort, which does so within a batch.
 */
#ifndef QMGR_READING_ORDER_H
#define QMGR_READING_ORDER_H

#include "base/envelope.h"

uint32_t *reading_order(const struct envelope *, uint32_t most);
/* The numbers of all its recipients; at most so many of a domain together, at least 1. */

#endif
