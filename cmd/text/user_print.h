/* user_print.h - logins as lines, as JSON, and in full.
 *
 * THREAD     Main.
 */
#ifndef CMD_TEXT_USER_PRINT_H
#define CMD_TEXT_USER_PRINT_H

#include "base/buf.h"
#include "smtpd/limiter.h"

enum { USER_PRINT_UNCOUNTED = -1 };

void user_print_list(struct buf *to, const struct limiter_order *);
void user_print_full(struct buf *to, const struct limiter_order *, int64_t queued);
void user_print_json(struct buf *to, const struct limiter_order *, int64_t queued);
/* queued: messages of that one login in the queue, or USER_PRINT_UNCOUNTED. */

void user_print_done(struct buf *to, const struct limiter_order *); /* "LOGIN suspended" */

#endif
