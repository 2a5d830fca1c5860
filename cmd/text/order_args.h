/* order_args.h - the words of `sluice dest`, `sluice user` and `sluice flow`: list or show, or an order on what is named.
 *
 * Both client and relay parse them; dest_args.h and user_args.h say what may be named.
 *
 * OWNERSHIP  Results point into argv.
 * THREAD     Any.
 * ERRORS     False, and what is wrong in error.
 */
#ifndef CMD_TEXT_ORDER_ARGS_H
#define CMD_TEXT_ORDER_ARGS_H

#include "base/buf.h"
#include "base/order.h"

#include <stdbool.h>
#include <stdint.h>

struct order_args {
	enum order verb;
	bool json, tabs, help;
	bool cluster;	       /* an order, or a list: on all nodes */
	const char *name;      /* or NULL: all */
	const char *provider;  /* instead; or NULL */
	const char *flow;      /* of --flow; or NULL */
	const char *for_text;  /* of --for; or NULL */
	int64_t for_ms;	       /* that: a suspension ends by itself; 0: not */
	const char *conf_file; /* of -c, or NULL */
};

bool order_args_parse(struct order_args *, int argc, char **argv, const char *named,
		      struct buf *error);
/* argv[0] is the command. Without a verb it is list, of all or of what is named. named: what an order needs, as "a login". */

bool order_args_name(const char *name, size_t most);
/* May it be a name, of so many bytes at most? Names end up in a text with lines and tabs. */

bool order_args_on_nodes(const struct order_args *, struct buf *error);
/* False: what is listed is this node's only, and --cluster wants a list of all nodes. */

#endif
