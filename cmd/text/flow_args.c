/* SPDX-License-Identifier: ISC */
#include "cmd/text/flow_args.h"

#include "base/mem.h"

#include <string.h>

enum { NAME_MAX_BYTES = 1000 };

/* Names end up in a text with lines and tabs. */
static bool good_name(const char *name)
{
	for (const char *p = name; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			return false;
	return strlen(name) <= NAME_MAX_BYTES;
}

/* "flow", and the name of the one that is wanted. */
char *flow_args_question(const char *name)
{
	return name ? mem_printf("flow %s", name) : mem_strdup("flow");
}

bool flow_args_asked(const char *question, const char **name)
{
	size_t len = strcspn(question, " ");
	*name = question[len] ? question + len + 1 : NULL;
	return len == 4 && memcmp(question, "flow", 4) == 0 && (!*name || good_name(*name));
}

bool flow_args_parse(struct order_args *a, int argc, char **argv, struct buf *error)
{
	if (!order_args_parse(a, argc, argv, "a flow", error))
		return false;
	if (a->tabs || a->provider)
		buf_printf(error, "there is no option --%s", a->tabs ? "tabs" : "provider");
	else if (a->name && !good_name(a->name))
		buf_puts(error, "flow: that is no name");
	else
		return true;
	return false;
}

