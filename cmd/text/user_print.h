/* user_print.h - logins as lines, as JSON, and in full.
 *
 * THREAD     Main.
 */
#ifndef CMD_TEXT_USER_PRINT_H
#define CMD_TEXT_USER_PRINT_H

#include "base/buf.h"
#include "smtpd/limiter.h"

void user_print_list(struct buf *to, const struct limiter_order *);
void user_print_full(struct buf *to, const struct limiter_order *);
void user_print_json(struct buf *to, const struct limiter_order *);
void user_print_done(struct buf *to, const struct limiter_order *); /* "LOGIN suspended" */

#endif
