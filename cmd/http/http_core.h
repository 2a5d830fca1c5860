/* http_core.h - what the parts of the HTTP server share.
 *
 * OWNERSHIP  One struct http a program.
 * THREAD     The loop's.
 */
#ifndef CMD_HTTP_HTTP_CORE_H
#define CMD_HTTP_HTTP_CORE_H

#include "cmd/http/asker.h"
#include "cmd/control/glance.h"
#include "cmd/http/http.h"
#include "cmd/http/http_clients.h"
#include "cmd/http/http_daemon.h"
#include "cmd/http/http_events.h"
#include "cmd/http/page_watch.h"
#include "cluster/cluster.h"
#include "smtpd/limiter.h"

#include <microhttpd.h>

struct maildrop;

struct http {
	struct loop *loop, *qmgr;
	struct spool *spool;
	struct maildrop *maildrop; /* or NULL */
	struct conf *conf;
	int64_t started_ms; /* steady clock: the relay */
	struct http_daemon daemon;
	struct glance glance;
	struct limiter_top *top;    /* who sends most, or NULL */
	struct cluster_view *nodes; /* who is there, as Redis says, or NULL */
	struct node_view *epochs;   /* as NATS says, or NULL */
	struct list asks;
	struct list looks; /* http_look.h */
	int heavy;	   /* of asks and looks, those under way that may gather much */
	struct http_clients clients;
	struct http_events events;
	struct page_watch watch;
};

enum MHD_Result http_answer(void *http, struct MHD_Connection *, const char *url,
			    const char *method, const char *version, const char *data,
			    size_t *data_len, void **state);
void http_completed(void *http, struct MHD_Connection *, void **state,
		    enum MHD_RequestTerminationCode);
size_t http_unescape(void *unused, struct MHD_Connection *, char *text);
/* For the library: http_request.c. */

#endif
