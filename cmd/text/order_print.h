/* order_print.h - what an order of `sluice dest`, `flow` or `user` has done, with --json.
 *
 * THREAD     Any.
 * ERRORS     None.
 * SEE        order_args.h; in words it is said by dest_print.h, flow_print.h and user_print.h.
 */
#ifndef CMD_TEXT_ORDER_PRINT_H
#define CMD_TEXT_ORDER_PRINT_H

#include "base/buf.h"
#include "base/order.h"

#include <stdint.h>

void order_print_json(struct buf *, const char *what, const char *name, enum order,
		      int64_t until_ms);
/* {"flow":"shop.example","state":"suspended","until":null}: what is named, as "flow"; 0: it has no end, or is no
 * suspension. */

#endif
