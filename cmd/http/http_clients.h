/* http_clients.h - who is connected to the HTTP server, and how long each may take.
 *
 *	READING --> REPLYING --> READING ...	each with one deadline, however slowly the bytes come
 *	               +--> LISTENING		to a reply without an end: as long as it likes
 *
 * The library's own time-out starts again with each byte, and at its limit of connections it lets in
 * nobody else. So when there are nearly as many, the client with the oldest unfinished request makes room
 * for the next one.
 *
 * OWNERSHIP  The library's connection owns its client, as its socket context. The descriptor is the
 *            library's too: here it is only shut down, and the library closes it then.
 * THREAD     http.
 * ERRORS     None.
 */
#ifndef CMD_HTTP_HTTP_CLIENTS_H
#define CMD_HTTP_HTTP_CLIENTS_H

#include "base/list.h"
#include "base/loop.h"

#include <microhttpd.h>
#include <stdint.h>

enum {
	HTTP_CLIENTS_MAX = 64,
	HTTP_CLIENTS_SPARE = 8, /* of them, kept free for whoever asks and goes */
	HTTP_READING_MS = 10000,
	HTTP_REPLYING_MS = 60000,
};

struct http_clients {
	struct loop *loop;
	struct list reading, replying, listening; /* each: longest first */
	struct timer late;
	int n;
};

void http_clients_init(struct http_clients *, struct loop *);

void http_clients_notify(struct http_clients *, struct MHD_Connection *, void **context,
			 enum MHD_ConnectionNotificationCode);
/* One has come, or gone, as the library says. */

void http_clients_move(struct http_clients *, struct MHD_Connection *, struct list *to);
/* To one of its lists: replying once the head is complete; reading once the client may ask again. */

#endif
