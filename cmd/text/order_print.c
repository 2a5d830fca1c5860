/* SPDX-License-Identifier: ISC */
#include "cmd/text/order_print.h"

#include "cmd/text/json_put.h"

#include <assert.h>

void order_print_json(struct buf *to, const char *what, const char *name, enum order order,
		      int64_t until_ms)
{
	assert(order_changes(order));
	buf_puts(to, "{");
	json_put_text(to, what, name);
	json_put_text(to, "state", order_done(order));
	json_put_time(to, "until", order == ORDER_SUSPEND ? until_ms : 0);
	json_put_line(to);
}
