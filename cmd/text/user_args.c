/* SPDX-License-Identifier: ISC */
#include "cmd/text/user_args.h"

bool user_args_parse(struct user_args *a, int argc, char **argv, struct buf *error)
{
	struct order_args *o = &a->order;
	a->login[0] = '\0';
	if (!order_args_parse(o, argc, argv, "a login", error) || !order_args_on_nodes(o, error))
		return false;
	if (o->tabs || o->provider || o->flow || o->for_text) {
		buf_printf(error, "there is no option --%s",
			   o->tabs	 ? "tabs"
			   : o->provider ? "provider"
			   : o->flow	 ? "flow"
					 : "for");
		return false;
	}
	return !o->name || users_named(o->name, a->login, error);
}
