/* queue_check.h - sluice queue check: reads the whole queue while no relay is running.
 *
 * THREAD     Main.
 * ERRORS     STATUS_REFUSED when something is wrong in the queue, or it can't be checked.
 * SEE        spool/spool_check.h, spool/repair.h.
 */
#ifndef CMD_OPERATOR_QUEUE_CHECK_H
#define CMD_OPERATOR_QUEUE_CHECK_H

#include "base/conf.h"
#include "cmd/text/queue_args.h"

int queue_check(struct conf *, const struct queue_args *); /* the exit status */

#endif
