/* milter_engine.h - one filter, as a mail server talks to it: bytes in, bytes out, no I/O.
 *
 *	milter_engine_hello()	--> what we can		NEGOTIATING
 *	milter_engine_take()	<-- what it wants	IDLE: MILTER_SAYS_READY
 *	milter_engine_ask()	--> an event		ASKED, or still IDLE if it sends no answer
 *	milter_engine_take()	<-- changes, behind the end of a body only; then its answer: IDLE
 *
 * At most one answer is expected at a time. The question, and what was negotiated, decide which answers are valid.
 * A new body may come in one packet of any length, and is handed on in pieces of MILTER_BODY_CHUNK.
 * An unexpected answer, a change at the wrong time or of the wrong kind, an impossible length, a text
 * without its end, an invalid reply, an injected end of header or body: each is
 * a fault, after which nothing from the filter is believed.
 *
 * OWNERSHIP  Embedded; milter_engine_fini(). An answer's texts lie in the engine, until the next call.
 * THREAD     Its owner's. Pure: no clock, no I/O.
 * STATES     NEGOTIATING, IDLE, ASKED, FAULTY.
 * ERRORS     MILTER_SAYS_FAULT, and milter_engine.fault says which.
 * SEE        milter_table.h.
 */
#ifndef SMTPD_MILTER_ENGINE_H
#define SMTPD_MILTER_ENGINE_H

#include "base/buf.h"
#include "smtpd/milter/milter_table.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	MILTER_BODY_CHUNK = 65535, /* bytes of a body in one packet of ours, and in most of its */
	MILTER_PACKET_MAX = MILTER_BODY_CHUNK + 1,
	MILTER_REPLY_LINES_MAX = 32,
	MILTER_REPLY_LINE_MAX = 980,
};

enum milter_state { MILTER_NEGOTIATING, MILTER_IDLE, MILTER_ASKED, MILTER_FAULTY };

struct milter_engine {
	enum milter_state state;
	enum milter_event asked; /* ASKED */
	uint32_t version, actions, steps;
	char *macros[MILTER_STAGES]; /* that it has asked for; NULL: it leaves that to us */
	struct buf in;		     /* a packet that has not come whole, or the last one */
	struct buf reply;	     /* of the last answer */
	size_t taken;		     /* bytes of it that were answered for */
	uint32_t body_left;	     /* bytes of a longer packet with a body that are to come */
	const char *fault;
};

enum milter_says {
	MILTER_SAYS_NOTHING, /* more bytes are needed */
	MILTER_SAYS_READY,
	MILTER_SAYS_CHANGE,
	MILTER_SAYS_WAIT, /* it works on it */
	MILTER_SAYS_ANSWER,
	MILTER_SAYS_FAULT,
};

struct milter_answer {
	enum milter_answer_kind kind;
	enum milter_change_kind change; /* MILTER_SAYS_CHANGE */
	uint32_t index;
	const char *text[2]; /* name and value, address and parameters; "" where there is none */
	bool leading_space;  /* of a value: it begins behind the colon */
	const char *body;
	size_t body_len;
	const char *reply; /* MILTER_ANSWER_REPLY: whole lines as for the client, checked */
};

void milter_engine_init(struct milter_engine *);
void milter_engine_fini(struct milter_engine *);

void milter_engine_hello(struct milter_engine *, struct buf *out);

bool milter_engine_wants(const struct milter_engine *, enum milter_event);

void milter_engine_macros(struct milter_engine *, enum milter_event,
			  const char *(*value)(void *owner, const char *name), void *owner,
			  struct buf *out);
/* Before an event: the macros of its stage, by the filter's choice or Postfix's. value: NULL for what
 * is not defined. */

bool milter_engine_ask(struct milter_engine *, enum milter_event, const void *data, size_t len,
		       struct buf *out);
/* The event and what belongs to it, of the form of its packet. True: an answer is to come. */

void milter_engine_order(struct milter_engine *, enum milter_order, struct buf *out);
/* MILTER_ABORT, MILTER_QUIT; while no answer is awaited. */

void milter_engine_again(struct milter_engine *, struct buf *out);
/* This client has gone: MILTER_QUIT_NEW_CONNECTION, and NEGOTIATING, for another. While no answer is
 * awaited, and with a filter of MILTER_VERSION. */

enum milter_says milter_engine_take(struct milter_engine *, struct buf *from,
				    struct milter_answer *);
/* The next that it says; its bytes are consumed. Call it until MILTER_SAYS_NOTHING. */

/* Data of an event, put together by who asks. */
void milter_put_number(struct buf *, uint32_t n, int bytes);
void milter_put_text(struct buf *, const char *); /* with its NUL */

#endif
