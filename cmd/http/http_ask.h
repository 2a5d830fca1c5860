/* http_ask.h - one request, from its head to its reply.
 *
 *	NEW --> WAITING: its connection is suspended, notes are under way --> ANSWERED: what is in out
 *	  +--> ANSWERED                                                        goes to the client
 *	  +--> LISTENING: its reply has no end (http_events.h)
 *
 * OWNERSHIP  The library's connection, and what is in flight: it is freed when both have let go.
 * THREAD     http.
 * ERRORS     A status other than 200, and a line that says why. More than ASKS_HEAVY_MAX that gather
 *            much at once: 503.
 */
#ifndef CMD_HTTP_HTTP_ASK_H
#define CMD_HTTP_HTTP_ASK_H

#include "base/metrics_print.h"
#include "cmd/http/http_core.h"
#include "cmd/text/queue_print.h"

enum {
	ASK_ROWS = 1000, /* of a list, if not said */
	ASK_ROWS_MAX = 10000,
	ASK_BYTES_MAX = 64 << 20, /* a list ends there */
	ASKS_HEAVY_MAX = 4,
};

struct http_ask {
	struct asker asker; /* first */
	struct glancer glancer;
	struct list link;
	struct list in_look; /* http_look.waiting */
	struct http *http;
	struct MHD_Connection *connection; /* NULL: closed */
	enum { ASK_NEW, ASK_WAITING, ASK_ANSWERED, ASK_LISTENING } state;
	bool in_flight, heavy;
	bool head_only; /* what is wanted of the reply */
	enum metrics_form form;
	unsigned status;
	const char *type;
	int64_t age_s; /* of what is in out */
	struct buf out;
	uint64_t after;		    /* queue: the last message of the page before */
	int64_t left;		    /* rows that are still wanted */
	struct queue_unread unread; /* queue */
	char *what;		    /* explain */
	struct spool_command *
		shown; /* explain: the message, while the scheduler is asked about its site; or NULL */
	uint64_t id; /* that it may be, or 0 */
};

struct http_ask *http_ask_new(struct http *, struct MHD_Connection *);
void http_ask_closed(struct http_ask *); /* by the library */
void http_asks_drop(struct http *);	 /* resume all: the library is about to close */
void http_asks_free(struct http *);

/* Each begins one; the reply comes later, or at once. */
void http_ask_metrics(struct http_ask *);
void http_ask_stats(struct http_ask *);
void http_ask_nodes(struct http_ask *); /* nothing where this node is alone */
void http_ask_queue(struct http_ask *);
void http_ask_dest(struct http_ask *);
void http_ask_shape(struct http_ask *);	  /* http_shape.c */
void http_ask_flows(struct http_ask *);	  /* those suspended first, then the busiest */
void http_ask_reasons(struct http_ask *); /* http_reasons.c */
void http_ask_search(struct http_ask *);  /* http_search.c */
void http_ask_explain(struct http_ask *); /* http_explain.c */

const char *http_ask_value(const struct http_ask *, const char *name); /* "" where it is not said */
bool http_ask_limit(struct http_ask *, int64_t *rows);
/* How many rows are wanted; false: it is refused. */

void http_ask_wait(struct http_ask *); /* suspend */

void http_ask_post(struct http_ask *, struct loop *to, struct note *,
		   void (*answer)(struct asker *, struct note *));
/* Wait for the answer to this note. */

void http_ask_done(struct http_ask *, unsigned status);
void http_ask_refuse(struct http_ask *, unsigned status, const char *why);
void http_ask_unreadable(struct http_ask *, int error);
/* The message is there, and can't be had: spool_command.error. */

bool http_ask_arrived(struct http_ask *);
/* The note is back. False: nobody waits any more, and the ask is gone. */

#endif
