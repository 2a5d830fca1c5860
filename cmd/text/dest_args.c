/* SPDX-License-Identifier: ISC */
#include "cmd/text/dest_args.h"

#include <string.h>

enum { NAME_MAX_BYTES = 4095 };

bool dest_args_parse(struct order_args *a, int argc, char **argv, struct buf *error)
{
	if (!order_args_parse(a, argc, argv, "a site or a host", error) ||
	    !order_args_on_nodes(a, error))
		return false;
	if ((a->name && !order_args_name(a->name, NAME_MAX_BYTES)) ||
	    (a->provider && (!*a->provider || !order_args_name(a->provider, NAME_MAX_BYTES)))) {
		buf_puts(error, "dest: that is no name");
		return false;
	}
	return true;
}
