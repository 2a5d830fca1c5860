/* http.h - what the relay tells over HTTP: /metrics, /api/stats, /healthz. Read-only.
 *
 * OWNERSHIP  http_start() gives the server to the caller; http_stop() takes it back.
 * THREAD     Requests are answered in a thread of the library's own; it reads counters only.
 * ERRORS     An address that can't be listened on: NULL, and error says why.
 * SEE        Prometheus text format 0.0.4.
 */
#ifndef CMD_HTTP_H
#define CMD_HTTP_H

#include "base/conf.h"
#include "spool/spool.h"

struct http;

struct http *http_start(const struct conf *, struct spool *, struct buf *error);
/* The server at conf->http. */

void http_stop(struct http **); /* NULL is allowed */

#endif
