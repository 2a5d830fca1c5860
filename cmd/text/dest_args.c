/* SPDX-License-Identifier: ISC */
#include "cmd/text/dest_args.h"

#include <string.h>

enum { NAME_MAX_BYTES = 4095 };

/* A pattern or an address, which no site, host or domain is called: what was said of it would hold for no mail. The login of a
 * site stands behind a blank. */
static bool is_pattern(const char *name)
{
	bool socket = strncmp(name, "unix:", 5) == 0;
	return strchr("*.@<", *name) || (strchr(name, '@') && !socket && !strpbrk(name, " ["));
}

bool dest_args_parse(struct order_args *a, int argc, char **argv, struct buf *error)
{
	if (!order_args_parse(a, argc, argv, "a site or a host", error) ||
	    !order_args_on_nodes(a, error))
		return false;
	if ((a->name && !order_args_name(a->name, NAME_MAX_BYTES)) ||
	    (a->provider && (!*a->provider || !order_args_name(a->provider, NAME_MAX_BYTES))) ||
	    (a->flow && (!*a->flow || !order_args_name(a->flow, NAME_MAX_BYTES)))) {
		buf_puts(error, "dest: that is no name");
		return false;
	}
	if (a->name && (a->verb == ORDER_SUSPEND || a->verb == ORDER_RESET) &&
	    is_pattern(a->name)) {
		buf_printf(error, "dest %s: %s is no site, no host and no domain",
			   order_word(a->verb), a->name);
		return false;
	}
	return true;
}
