/* http.h - the HTTP server: metrics, the JSON of the commands, the status page. Read-only.
 *
 *	browser --> [ http_request: who may ask what ] -- metrics, files --> reply
 *	               |            ^
 *	               v            | resumed
 *	            [ http_ask ] -- notes --> spool, qmgr --> back, in the loop's thread
 *
 *	            [ page_watch ]: each second, while somebody looks --> [ http_events ] --> listeners
 *
 *	http.c          the thread		http_daemon.c   the library in its loop
 *	http_request.c  method, Host, path	http_host.c     names that are ours
 *	http_clients.c	who is connected, and for how long
 *	http_ask.c      one question under way	http_explain.c  the one that may ask twice
 *	http_look.c     one that costs something, made once for all who want it:
 *	http_shape.c, http_reasons.c, http_search.c; reasons.c: messages by reason;
 *	http_sampling.c: some of the queue, part by part
 *	http_events.c   who listens		page_watch.c    what they are told, and when
 *	page_hour.c     an hour of counters	page_print.c    that as JSON
 *	page_files.c    the page itself
 *
 * The thread has a loop of its own and asks as the control socket does, so that the mail path never
 * waits for a reader. What costs the spool time is asked seldom enough that it takes a hundredth of it.
 *
 * OWNERSHIP  http_new() gives the server to the caller; it stays until all have ended that may still
 *            answer it.
 * THREAD     Main makes, moves, stops and frees it. All else is the loop's.
 * ERRORS     An address that can't be listened on: false, and error says why.
 * SEE        RFC 9110; Prometheus text format 0.0.4; the HTML standard, "Server-sent events".
 */
#ifndef CMD_HTTP_HTTP_H
#define CMD_HTTP_HTTP_H

#include "base/conf.h"
#include "qmgr/qmgr.h"
#include "spool/spool.h"

struct http;
struct maildrop;

/* Who is asked. */
struct http_asks {
	struct spool *spool;
	struct qmgr *qmgr;
	struct maildrop *maildrop;
};

struct http *http_new(struct conf *, const struct http_asks *, int64_t started_ms);

void http_leave(struct http *); /* listen nowhere, until http_move(): the address is free */

bool http_move(struct http *, struct conf *, struct buf *error);
/* Listen where conf->http says, or nowhere, from now on, and use these settings. All connections to
 * the old address are closed. False: nothing is listened on. */

void http_reload(struct http *, struct conf *); /* new settings, the same address */
struct loop *http_loop(struct http *);		/* takes LIMITER_TOP */
void http_start(struct http *);
void http_stop(struct http *); /* closes all at once */
void http_free(struct http **);

#endif
