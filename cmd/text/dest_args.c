/* SPDX-License-Identifier: ISC */
#include "cmd/text/dest_args.h"

#include <string.h>

enum { NAME_MAX_BYTES = 4095 };

/* Names end up in a text with lines and tabs. */
static bool good_name(const char *name)
{
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return strlen(name) <= NAME_MAX_BYTES;
}

bool dest_args_parse(struct order_args *a, int argc, char **argv, struct buf *error)
{
	if (!order_args_parse(a, argc, argv, "a site or a host", error) ||
	    !order_args_on_nodes(a, error))
		return false;
	if ((a->name && !good_name(a->name)) ||
	    (a->provider && (!*a->provider || !good_name(a->provider)))) {
		buf_puts(error, "dest: that is no name");
		return false;
	}
	return true;
}

