/* conn.h - a connection that a worker of smtpc holds for us.
 *
 * STATES     connecting -> ready -> closed, while anything that it was given is to come back ->
 *            gone. A ready one lies in its site's list of those with a free place, or among the
 *            rest.
 * OWNERSHIP  The scheduler's table, until CONNECTION_CLOSED.
 * THREAD     qmgr.
 * SEE        base/delivery.h
 */
#ifndef QMGR_CONN_H
#define QMGR_CONN_H

#include "base/delivery.h"
#include "qmgr/job.h"
#include "qmgr/site.h"

struct conn {
	uint64_t number;
	struct site *site;
	struct host *host;
	int worker;
	bool ready;
	bool alone;	     /* what it carries must have no company, see indoubt.h */
	bool slow;	     /* unanswered, and another host may be tried beside it */
	bool reserve;	     /* for mail in doubt on its host only: a better host serves */
	bool extra;	     /* is that other try, which has none of its own */
	bool worn;	     /* has been given all that a connection may carry */
	bool closed;	     /* by the worker; deliveries that met no one are on their way back */
	bool dsn;	     /* the host passes RFC 3461 parameters on */
	int depth;	     /* places at least; 0 until it is ready */
	int depth_most;	     /* places when its host has earned them */
	int busy;	     /* places taken */
	int64_t bytes;	     /* of the messages that it carries */
	int given;	     /* deliveries in all */
	int64_t most;	     /* of them; 0: any number */
	int done;	     /* of them, came to a verdict */
	struct list carried; /* struct entry, in flight */
	struct list in_site;
	struct list in_host_idle; /* host->idle, likewise */
	struct list in_idle;	  /* transport->idle, when ready and carrying nothing */
	bool ending;		  /* told to close */
	struct list in_host;	  /* host->conns, until it is closed */
	UT_hash_handle hh;
};

void conn_open(struct qmgr *, struct site *, struct host *);
void conn_give(struct qmgr *, struct conn *, struct entry *);

void conn_end(struct qmgr *, struct conn *);
/* Close it when what it carries is done; it is given nothing more. */

void conn_on_slow(struct connection_slow *);
void conn_on_ready(struct connection_ready *);
void conn_on_back(struct qmgr *, struct delivery *);
void conn_on_closed(struct qmgr *, struct connection_open *);

void conn_set_depth(struct host *, int depth);
/* What it has earned, which its connections share. */

void conn_take_verdicts(struct qmgr *, struct conn *, struct entry *, struct delivery *);
/* Recipients that have none stay in the entry. */

void conn_give_up(struct entry *, const struct conn *);
/* It came back untouched too often: deferred. */

void conns_free(struct qmgr *);
/* Forget all connections, and the entries in flight on them. */

#endif
