/* http_events.h - the clients that receive server-sent events.
 *
 * A listener that has not read what it was sent last is passed over: what it gets next is as new as
 * what the others get.
 *
 * OWNERSHIP  A listener goes with its response, when the library closes the connection.
 * THREAD     http.
 * ERRORS     More than EVENTS_LISTENERS_MAX: refused. One that reads nothing for ten seconds is closed.
 * SEE        The HTML standard, "Server-sent events".
 */
#ifndef CMD_HTTP_HTTP_EVENTS_H
#define CMD_HTTP_HTTP_EVENTS_H

#include "base/buf.h"
#include "base/list.h"

#include <microhttpd.h>
#include <stdbool.h>

enum { EVENTS_LISTENERS_MAX = 16 };

struct http_daemon;

struct http_events {
	struct http_daemon *daemon; /* to be woken */
	struct list listeners;
	int n;
};

/* One event, for those that have not had it: number grows when the text changes. */
struct http_event {
	const char *name;
	const struct buf *text; /* one line */
	unsigned number;	/* 0: there is none yet */
};

enum { EVENTS_KINDS = 2 };

void http_events_init(struct http_events *, struct http_daemon *);

struct MHD_Response *http_events_listen(struct http_events *, struct MHD_Connection *);
/* A response without end; NULL: too many listen. */

void http_events_send(struct http_events *, const struct http_event event[EVENTS_KINDS]);
void http_events_drop(struct http_events *); /* resume all: the library is about to close */

#endif
