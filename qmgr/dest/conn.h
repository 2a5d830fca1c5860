/* conn.h - a connection that a worker of smtpc holds for us.
 *
 *	CONNECTING ----> READY ----> ENDING	and from each to CLOSED, until all that it was given is back
 *	     |    ^        ^   |        |
 *	     v    |        |   v        v
 *	    PROBING -------+  LEAVING <-+
 *	     |  and CONNECTING          |
 *	     +---> ABANDONED -----------+
 *
 *	connecting	mail waits for it
 *	probing		being opened too, but no mail waits: a probe of a host that was out, or one that
 *			is slow to answer, so that another was tried beside it
 *	ready		may carry mail, when it has a place
 *	ending		was ready, and is told to close
 *	abandoned	was not known to be ready, and is told to close
 *	leaving		is stalled, and is told to close at once
 *
 * A connection serves one site at a time, the one that it was opened for at first. Idle, it is lent
 * to any other site of its transport that has the same host, and is then that site's.
 *
 * One that was ready may be stalled: its host owes an answer for long. It can then be told to leave, unless the host has all of a
 * message (awaited).
 *
 * OWNERSHIP  destdb's table, until CONNECTION_CLOSED.
 * THREAD     qmgr.
 * STATES     As drawn; conn_move() is the one mover, and all numbers of connections follow from it.
 * SEE        base/delivery.h
 */
#ifndef QMGR_DEST_CONN_H
#define QMGR_DEST_CONN_H

#include "base/delivery.h"
#include "qmgr/dest/site.h"
#include "qmgr/sched/job.h"

#define CONN_TO(state) (1u << CONN_##state)
#define CONN_END CONN_TO(CLOSED)

/* X(state, states that may follow) */
#define CONN_STATES(X)                                                                             \
	X(CONNECTING, CONN_TO(PROBING) | CONN_TO(READY) | CONN_TO(ABANDONED) | CONN_END)           \
	X(PROBING, CONN_TO(READY) | CONN_TO(ABANDONED) | CONN_END)                                 \
	X(READY, CONN_TO(ENDING) | CONN_TO(LEAVING) | CONN_END)                                    \
	X(ENDING, CONN_TO(LEAVING) | CONN_END)                                                     \
	X(ABANDONED, CONN_TO(LEAVING) | CONN_END)                                                  \
	X(LEAVING, CONN_END)                                                                       \
	X(CLOSED, 0u)

enum conn_state {
#define X(state, ...) CONN_##state,
	CONN_STATES(X)
#undef X
};

enum { CONN_MAGIC = 0xc0221234 };

struct conn {
	unsigned magic;
	uint64_t number;
	struct site *site;
	struct host *host;
	char *name;	   /* what the host was called when it was opened */
	char *peer;	   /* likewise, name[address]:port: so its verdicts call it */
	char *hello;	   /* how we have called ourselves there */
	struct conf *conf; /* with which it was opened, a reference; */
	const struct conf_transport *settings; /* in there */
	int worker;
	enum conn_state state;
	enum connection_slowness
		stall; /* as its worker says, once it was ready; else CONNECTION_MOVES */
	bool reserve; /* a better host serves: for what overflows, and for mail in doubt on its host */
	bool extra;	     /* was opened beside one that is slow, and has none beside it itself */
	bool dsn;	     /* the host passes RFC 3461 parameters on */
	bool deliverby;	     /* and those of RFC 2852 */
	bool plain;	     /* TLS was wished for, and is broken under its name */
	bool ended_well;     /* closed by us, such as for having nothing to carry */
	int trips, behind;   /* round trips of a message: alone, and behind another */
	int depth;	     /* places at least; 0 until it is ready */
	int depth_most;	     /* places when its host has earned them */
	int busy;	     /* places taken */
	int64_t bytes;	     /* of the messages that it carries */
	int64_t opened_ms;   /* steady clock */
	unsigned era;	     /* of the host, at that time */
	int64_t head_us;     /* steady clock: since when the first that it carries has its turn */
	int64_t ended_us;    /* steady clock: last reply to the last delivery; 0: none yet */
	int given;	     /* deliveries in all */
	int64_t most;	     /* of them; 0: any number */
	int turn;	     /* of them, since this site has it */
	int done;	     /* of them, came to a verdict */
	int answered;	     /* of these, by the host */
	struct list carried; /* struct entry, in flight */
	struct list in_site;
	struct list in_host_idle; /* host->idle, when ready and carrying nothing */
	struct list in_idle;	  /* transport->idle, likewise */
	struct list in_silent;	  /* transport->silent, until it is ready or told to close */
	struct list in_turned;	  /* transport->turned, while it carries and has had its turn */
	struct list
		in_stalled; /* transport->stalled, while it is stalled or stuck, and not told to leave */
	struct list in_host; /* host->conns, until it is closed */
	UT_hash_handle hh;
};

struct conn *conn_open(struct destdb *, struct site *, struct site_host *, bool probe);
void conn_give(struct destdb *, struct conn *, struct entry *);

void conn_end(struct destdb *, struct conn *);
/* Close it when what it carries is done; it is given nothing more. */

void conn_leave(struct destdb *, struct conn *);
/* One that is stalled ends at once, and what it carries comes back: its place is for another site. */

void conns_end_proven(struct destdb *);
/* Hosts have to prove other things now: end connections to those that have proven anything. */

void conns_end_changed(struct destdb *);
/* End connections to hosts that have heard another name of ours than they would now, and those that a worker has
 * opened with other settings. */

void conns_free(struct destdb *);
/* Forget all connections, and the entries in flight on them. */

void conn_forget(struct destdb *, struct conn *);
/* The end of one that nothing more comes back from. */

/* conn_events.c */

void conn_abandon(struct destdb *, struct conn *);
/* The connection has not become ready, and its place is wanted: the host counts as failed. */

void conn_on_slow(struct connection_slow *);
void conn_on_ready(struct connection_ready *);
void conn_on_back(struct destdb *, struct delivery *);
void conn_on_closed(struct destdb *, struct connection_open *);

/* conn_places.c */

void conn_set_depth(struct host *, int depth);
/* The depth that the host has earned, which its connections share. */

/* conn_state.c */

void conn_move(struct conn *, enum conn_state);
void conn_enter(struct conn *);		      /* a new one, in its first state: counted */
void conn_is_silent(struct conn *);	      /* being opened, and not heard of for some time */
void conn_lend(struct conn *, struct site *); /* idle: it is this site's now */
void conn_set_stall(struct conn *, enum connection_slowness);

static inline bool conn_ready(const struct conn *c)
{
	return c->state == CONN_READY;
}

/* Or was, and is told to close. */
static inline bool conn_stands(const struct conn *c)
{
	return c->state == CONN_READY || c->state == CONN_ENDING || c->state == CONN_LEAVING;
}

static inline bool conn_told_to_close(const struct conn *c)
{
	return c->state == CONN_ENDING || c->state == CONN_ABANDONED || c->state == CONN_LEAVING;
}

/* Likewise, but owes an answer for long: nobody knows when it ends. */
static inline bool conn_lingers(const struct conn *c)
{
	bool at_once = c->state == CONN_LEAVING && c->stall != CONNECTION_AWAITED;
	return conn_told_to_close(c) && !at_once && c->stall != CONNECTION_MOVES;
}

static inline bool conn_unready(const struct conn *c)
{
	return c->state == CONN_CONNECTING || c->state == CONN_PROBING;
}

#endif
