/* socketmap_name.h - a table that a server is asked for: "socketmap:unix:/its/path:NAME".
 *
 *	socketmap:unix:/run/maps:senders	socketmap:inet:192.0.2.1:9000:senders
 *	socketmap:inet:[2001:db8::1]:9000:senders
 *
 * OWNERSHIP  Pointers into the text that was read.
 * THREAD     Any. Pure.
 * SEE        POSTFIX socketmap_table(5); smtpd/socketmap.h, which asks.
 */
#ifndef BASE_SOCKETMAP_NAME_H
#define BASE_SOCKETMAP_NAME_H

#include "base/buf.h"
#include "base/resolve.h"

enum { SOCKETMAP_NAME_MAX = 100 }; /* bytes of NAME */

struct socketmap_name {
	const char
		*server;   /* "unix:/run/maps:senders": where, and the name behind the last colon */
	size_t server_len; /* of it, without that */
	const char *name;
	union address to;
};

bool socketmap_name_is(const char *table); /* is it meant to be one? */

bool socketmap_name_parse(const char *table, struct socketmap_name *, struct buf *why);
/* False: why not. */

#endif
