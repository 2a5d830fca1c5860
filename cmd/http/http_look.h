/* http_look.h - an expensive answer: made once for all clients, and kept for a while.
 *
 *	ask --> is there one of this key? -- being made --> waits for it
 *	  |            +-- made lately --> that, at once
 *	  +--> NEW: begin() --> notes to qmgr, spool, maildrop and back, one at a time --> READY
 *
 * An answer is as good as new for a hundred times as long as it took to make, between one second and
 * a minute. So whatever is asked, and by however many, takes a hundredth of the spool's time; and
 * what goes through the whole queue does so in parts of a millisecond or two.
 *
 * OWNERSHIP  struct http has them all, LOOKS_MAX at most: the one that was wanted last goes last. What
 *            a kind of look keeps of its own goes with it.
 * THREAD     http.
 * ERRORS     More than ASKS_HEAVY_MAX being made, or LOOKS_MAX kept that are all in use: 503.
 */
#ifndef CMD_HTTP_HTTP_LOOK_H
#define CMD_HTTP_HTTP_LOOK_H

#include "cmd/http/http_ask.h"

enum { LOOKS_MAX = 16, LOOK_KEPT_MAX = 1 << 20 /* bytes; a longer answer is for those who wait */ };

struct http_look {
	struct asker asker; /* first */
	struct list link;   /* http.looks: wanted last first */
	struct http *http;
	char *key;
	enum { LOOK_NEW, LOOK_ASKING, LOOK_READY } state;
	bool in_flight;
	int64_t asked_ms, made_ms, next_ms; /* steady clock */
	unsigned status;
	const char *type;
	struct buf out;
	struct list waiting; /* struct http_ask, in_look */
	void *own;	     /* the kind's */
	void (*free_own)(void *);
};

struct look_kind {
	void (*begin)(struct http_look *); /* ends in http_look_post() or http_look_done() */
	void (*free_own)(void *);
};

void http_look_want(struct http_ask *, const char *key, const struct look_kind *, void *own);
/* Answer it now or later. Takes own. */

void http_look_expect(struct http_look *, void (*answer)(struct asker *, struct note *));
/* A note that has the look as its owner is about to be posted. */

void http_look_post(struct http_look *, struct loop *, struct note *,
		    void (*answer)(struct asker *, struct note *));
bool http_look_back(struct http_look *);
/* The note is back. False: the server is closed, and the look is gone. */

void http_look_done(struct http_look *, unsigned status);
void http_look_fail(struct http_look *, unsigned status, const char *why);

void http_looks_free(struct http *);

#endif
