/* http_daemon.h - the library that speaks HTTP, in our loop: called when its sockets are ready, or its time has come.
 *
 * OWNERSHIP  Embedded in struct http, which has the clients too. Owns the library's daemon.
 * THREAD     http.
 * ERRORS     None.
 * SEE        libmicrohttpd: MHD_run(), MHD_get_timeout(), MHD_suspend_connection().
 */
#ifndef CMD_HTTP_HTTP_DAEMON_H
#define CMD_HTTP_HTTP_DAEMON_H

#include "base/loop.h"
#include "cmd/http/http_clients.h"

#include <microhttpd.h>
#include <stdbool.h>

struct http_daemon {
	struct loop *loop;
	const struct http_clients *clients;
	struct MHD_Daemon *library; /* NULL: nothing is listened on */
	ev_io ready;		    /* the library's epoll */
	bool closed;		    /* a connection, since the library was called */
	struct timer due;	    /* the library wants to be called */
};

void http_daemon_init(struct http_daemon *, struct loop *, const struct http_clients *);

void http_daemon_open(struct http_daemon *, struct MHD_Daemon *); /* takes it */
void http_daemon_close(struct http_daemon *);
/* If it is open. No connection is suspended any more, or the library would wait for it. */

void http_daemon_wake(struct http_daemon *);
/* A connection was resumed: the library is called as soon as we are back in the loop. */

void http_daemon_lost_one(struct http_daemon *); /* the library has closed a connection */

#endif
