/* SPDX-License-Identifier: ISC */
#include "cmd/text/flow_args.h"

#include "base/mem.h"

#include <string.h>

enum { NAME_MAX_BYTES = 1000 };

/* "flow", and the name of the one that is wanted. */
char *flow_args_question(const char *name)
{
	return name ? mem_printf("flow %s", name) : mem_strdup("flow");
}

bool flow_args_asked(const char *question, const char **name)
{
	size_t len = strcspn(question, " ");
	*name = question[len] ? question + len + 1 : NULL;
	return len == 4 && memcmp(question, "flow", 4) == 0 &&
	       (!*name || order_args_name(*name, NAME_MAX_BYTES));
}

/* The section of all flows, and a domain as tables may have it, are no flows. */
static bool is_no_flow(const char *name)
{
	return strcmp(name, "*") == 0 || *name == '@';
}

bool flow_args_parse(struct order_args *a, int argc, char **argv, struct buf *error)
{
	if (!order_args_parse(a, argc, argv, "a flow", error))
		return false;
	if (a->tabs || a->provider || a->flow)
		buf_printf(error, "there is no option --%s",
			   a->tabs	 ? "tabs"
			   : a->provider ? "provider"
					 : "flow");
	else if (a->name && !order_args_name(a->name, NAME_MAX_BYTES))
		buf_puts(error, "flow: that is no name");
	else if (a->name && a->verb == ORDER_SUSPEND && is_no_flow(a->name))
		buf_printf(error, "flow suspend: %s is no flow", a->name);
	else
		return true;
	return false;
}
