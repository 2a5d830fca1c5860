/* share.h - how many workers one message may have at once: FINCH's allowed_new_worker.
 *
 * The same for the look-ups of its next hops (router.h) and for its connections (dispatch.h).
 *
 * Numbers in, numbers out.
 *
 * THREAD     Any.
 * SEE        FINCH 2007.
 */
#ifndef QMGR_SCHED_SHARE_H
#define QMGR_SCHED_SHARE_H

#include "base/conf.h"

#include <stdbool.h>
#include <stdint.h>

bool share_allows(const struct conf_queue *, int64_t concurrency, int64_t free_workers);
/* May a message that uses so many workers have one more? Fewer than max_message_concurrency, or than
 * scale_max_concurrency times those that are free. */

#endif
