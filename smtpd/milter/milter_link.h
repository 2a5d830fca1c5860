/* milter_link.h - connections to filters: kept, and used for one client after the other.
 *
 *	milter_link_get()	an idle one, or a new one	--> event READY, perhaps at once
 *	milter_link_ask()	one event			--> CHANGE ..., ANSWER
 *	milter_link_put()	QUIT_NC, another negotiation, and it is idle; or QUIT
 *
 * A filter that can't be reached, or does not end its negotiation, is left alone for 100 ms, then twice
 * as long, up to 5 s; meanwhile there are no connections. One that breaks off in the midst is asked
 * again at once: other messages need not suffer from what one did to it.
 *
 * Most filters serve one client a connection, whatever they say: those made with Sendmail's library hang
 * after QUIT_NC. So who does not negotiate again in time is not tried for a while, and gets QUIT.
 *
 * Whether a filter works is known to all threads: milter_health.h.
 *
 * OWNERSHIP  A thread's milters own idle connections, whoever has got one owns that.
 * THREAD     The loop's.
 * STATES     NEW: it is being made; READY; the engine's on top of these. IDLE in the list of its filter.
 * ERRORS     Event FAILED, once: then it is good for milter_link_drop() only.
 * SEE        milter_engine.h.
 */
#ifndef SMTPD_MILTER_MILTER_LINK_H
#define SMTPD_MILTER_MILTER_LINK_H

#include "base/conf.h"
#include "base/stream.h"
#include "smtpd/milter/milter_engine.h"

enum {
	MILTER_IDLE_MAX = 64,	/* connections of a thread to one filter */
	MILTER_IDLE_MS = 60000, /* that nobody used */
	MILTER_AGAIN_MS = 1000, /* for negotiating again */
	MILTER_PATIENCE_TIMES =
		10 /* of its timeout, for one question, however often it says "wait" */
};

enum milter_link_event {
	MILTER_LINK_READY,
	MILTER_LINK_CHANGE,
	MILTER_LINK_ANSWER,
	MILTER_LINK_DRAINED, /* there is room for more */
	MILTER_LINK_FAILED,
};

struct milters;
struct milter_site;

typedef bool milter_link_handler(void *owner, enum milter_link_event, const struct milter_answer *);
/* After CHANGE: false, if the link has been dropped. After any other event the link is not touched. */

struct milter_link {
	unsigned magic;
	struct list link; /* while nobody has it */
	struct milter_site *site;
	struct stream *stream;
	struct milter_engine engine;
	struct timer deadline; /* of what it owes us; idle: its end */
	int64_t timeout_ms, until_ms;
	int64_t asked_us; /* steady clock: its last question */
	bool ready;
	bool reused;	 /* it has served another, and has not said anything since */
	const char *why; /* FAILED */
	milter_link_handler *event;
	void *owner; /* whoever has it; NULL: it is idle */
};

struct milters *milters_new(struct loop *);
void milters_free(struct milters **);

struct milter_link *milter_link_get(struct milters *, const struct conf_milter *,
				    milter_link_handler *, void *owner);
/* Ready, or to become so within the filter's timeout. NULL: it is left alone for now. */

bool milter_link_ask(struct milter_link *, enum milter_event, const void *data, size_t len);
/* True: the answer is to come, within the filter's timeout. False: it gives none to this. */

struct buf *
milter_link_out(struct milter_link *); /* for macros: what is sent with the next event */

bool milter_link_full(struct milter_link *);
/* The filter does not read: wait for DRAINED before more is sent. */

void milter_link_patience(struct milter_link *);
/* From now on it may take MILTER_PATIENCE_TIMES its timeout, for all that it is asked until this is
 * called again. */

void milter_link_abort(struct milter_link *); /* the message has come to nothing */

void milter_link_put(struct milter_link **);
/* The link was ready, and owes no answer: for another client. Otherwise it is dropped. NULL is allowed. */

void milter_link_drop(struct milter_link **);

#endif
