/* retry.h - when a message is tried again, and when it is given up.
 *
 * The next attempt comes after the message's age in the queue, within minimal and
 * maximal_backoff_time, a little earlier or later by chance, so that what came together does not
 * come back together.
 *
 * Numbers in, numbers out.
 *
 * THREAD     qmgr.
 * SEE        POSTFIX QSHAPE_README, "deferred queue", last paragraph.
 */
#ifndef QMGR_RETRY_H
#define QMGR_RETRY_H

#include "base/conf.h"
#include "base/envelope.h"

#include <stdbool.h>
#include <stdint.h>

int64_t retry_due_ms(const struct conf_queue *, const struct envelope *, int64_t now_ms,
		     double chance);
/* Wall clock. chance: 0 <= chance < 1. Never later than what is due to the sender: the warning of a
 * delay, or the end of the message's lifetime. */

bool retry_expired(const struct conf_queue *, const struct envelope *, int64_t now_ms);
bool retry_warning_due(const struct conf_queue *, const struct envelope *, int64_t now_ms);

#endif
