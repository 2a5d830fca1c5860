/* route_value.h - what a row of a table of routes says.
 *
 *	slow					the transport, by MX
 *	relay=					by MX: in sender_routes, where a row inherits what it does not name
 *	relay=[10.0.0.5]:25,[10.0.0.6]:25	next hops, as in a route section
 *	slow relay=a.test=3,b.test=1		both
 *	slow verify				recipients are verified before they are accepted
 *	error 5.1.2 no such domain		returned, or with 4.x.x deferred
 *	discard					dropped
 *
 * OWNERSHIP  route_value_fini() frees what is in it.
 * THREAD     Any. Pure.
 */
#ifndef BASE_ROUTE_VALUE_H
#define BASE_ROUTE_VALUE_H

#include "base/conf.h"

enum route_action { ROUTE_DELIVER, ROUTE_ERROR, ROUTE_DISCARD };

struct route_value {
	enum route_action action;
	char *transport; /* NULL: smtp */
	struct conf_list relay;
	bool by_mx; /* said so, by "relay=" with nothing behind */
	bool verify;
	char dsn[12]; /* ERROR */
	char *text;   /* ERROR, DISCARD */
};

const char *route_value_parse(const char *, struct route_value *, struct buf *why);
/* NULL: good. Else where it is not, and why. Whether the transport exists is not looked at. */

const char *route_value_error(const char *, struct route_value *, struct buf *why);
/* The value behind "error": an enhanced code and a text. */

void route_value_fini(struct route_value *);

#endif
