/* destdb.h - the destination database: hosts, and which of them gets the next connection.
 *
 * A host is an address and port, with the TLS policy and the source address that connections to it
 * have. Its record is shared by all sites that it serves.
 *
 *	unused	never connected to		chosen first, at random
 *	closed	had connections, has none	then, the one whose last connection is oldest
 *	retry	failed; its time has come	then, at random
 *	active	has connections			then, the one with the fewest
 *	slow	was slow to connect		last, whatever else it is
 *	out	failed; until retry_ms		not chosen; a group that is all out is passed over
 *
 * A host with an attempt that no mail waits for any more (unanswered) comes last too, and a group of
 * such hosts is passed over as long as another has one that is none. That is an attempt that had no
 * answer for connection_attempt_delay while the group has a quicker host, or for
 * backup_attempt_delay while any other has one; and the first at a host whose time to retry has
 * come. So each failure is found out at the cost of one message's delay, and none later.
 *
 * The record also keeps how many messages a host may be sent before it has answered the first: one,
 * and one more with each that it answers well, until a connection breaks or content turns out to
 * have been sent for nothing; and for a day the mode in which it did not lose count of the commands,
 * and how many messages it takes on one connection.
 *
 * In a group with weights the host with the fewest connections for its weight is chosen, at first one
 * at random by weight: so each has its share, of the connections open at once and of those opened.
 *
 * OWNERSHIP  The scheduler's table. A record is collected when no site and no connection refers to
 *            it.
 * THREAD     qmgr.
 * ERRORS     None.
 * SEE        FINCH 2007.
 */
#ifndef QMGR_DESTDB_H
#define QMGR_DESTDB_H

#include "base/delivery.h"
#include "base/keyed_hash.h"
#include "base/resolve.h"
#include "qmgr/transport.h"

enum {
	HOST_PLAIN_MS = 3600000,     /* broken TLS is believed so long */
	HOST_MODE_MS = 24 * 3600000, /* and the simpler mode */
	HOST_STALE_MS = 3600000,     /* what nobody has used for so long is forgotten */
};

struct host {
	char *key;
	char *name;	       /* of the MX host, for TLS and log */
	char *peer;	       /* name[address]:port, as in the verdicts of its connections */
	union address address; /* with the port */
	int refs;	       /* sites and connections */
	int connections;       /* connecting or ready */
	int ready;
	int64_t opened_ms;     /* steady clock: the last connection was begun; 0: never */
	int unanswered;	       /* of them, connecting, and no mail waits for it */
	int failures;	       /* connections in a row that were of no use */
	int64_t retry_ms;      /* steady clock: out until then; 0: in service */
	int64_t cool_ms;       /* steady clock: in service, but no further connection before then */
	int64_t slow_until_ms; /* steady clock: another was quicker, and goes before it until then */
	int64_t plain_until_ms; /* steady clock: its TLS is broken, none is tried before then */
	struct verdict *why;	/* the last failure, or NULL */
	bool refuses;		/* that was a 5xx to the connection, or to EHLO and HELO */
	bool suspended;		/* see suspend.h: out */
	int nidle;		/* ready connections that carry nothing, in: */
	struct list idle;	/* struct conn, the longest idle first */
	struct list full;	/* struct site: would open a connection if the host took one more */
	int64_t good_ms;	/* steady clock: a connection that was of use ended; 0: never */
	int doubts;	   /* deliveries in doubt since the record was made, for the operator */
	int depth;	   /* messages in flight that it has earned on one connection */
	struct list conns; /* struct conn, those not closed */
	enum connection_mode mode;
	int64_t mode_until_ms; /* steady clock: then all that it announces is tried again */
	int messages_most;     /* on one connection, as was found out, until: */
	int64_t messages_until_ms;
	UT_hash_handle hh;
};

/* The hosts of one site, groups in order of preference. */
struct site_host {
	struct host *host;
	uint32_t preference; /* equal: one group */
	double weight;	     /* above 0: share of the group's connections, see below */
};

enum destdb_choice {
	DESTDB_HOST,  /* *chosen */
	DESTDB_LATER, /* no further connection now; *wake_ms: ask again, 0: when one closes */
	DESTDB_NONE,  /* nothing is in service in any group */
};

struct host *destdb_get(struct qmgr *, const struct transport *, const char *name,
			const union address *);
/* The record, made when it is unknown, with a reference. */

struct host *destdb_host(struct qmgr *, const char *key, const char *name, const union address *);
/* The same by its key, without a reference. */

void host_unref(struct host *);
void host_free(struct qmgr *, struct host *);

enum destdb_choice destdb_choose(const struct site_host *hosts, int n, int64_t host_limit,
				 int64_t now_ms, double chance, struct host **chosen,
				 int64_t *wake_ms);
/* Pure. chance: 0 <= chance < 1. host_limit 0: none. */

int destdb_group(const struct site_host *hosts, int n, int64_t now_ms, int *end);
/* The group that destdb_choose() looks at: from the result to *end; -1: none is in service. Pure. */

void host_failed(struct host *, struct verdict *why, int64_t now_ms, int64_t backoff_ms);
/* A connection was of no use: never ready, or lost before it carried anything. A host that serves
 * is left alone for a moment that doubles each time, where those that fail together count as one;
 * any other is out for backoff_ms, or until one that is still connecting becomes ready. */

bool host_serves(const struct host *, int64_t now_ms);
/* Connections are ready; or were a moment ago, and have ended in order, as of age. */

void host_slow(struct host *, int64_t now_ms);
/* Its TCP handshake takes long: for ten minutes it comes after all others. It may work. */

void host_worked(struct host *);
void host_forget(struct host *);
/* All that was learnt about it, but for its depth (conn_set_depth()): as if it had never been
 * tried. */

bool host_stale(const struct host *, int64_t now_ms);
/* Nobody uses it, and nothing that is known about it is worth keeping. */

const char *host_state(const struct host *, int64_t now_ms);
/* One of those above, idle (active, and nothing carried), or suspended. */
void host_ended_well(struct host *, int64_t now_ms);
/* A connection that was of use has ended in order: the host has a place for another. */

const char *host_mode_name(enum connection_mode);
enum connection_mode host_mode(const struct host *, int64_t now_ms);
void host_confused(struct host *, enum connection_mode next, struct verdict *why, int64_t now_ms);
/* It lost count, or was hurried: the next connection is to be in this mode, and in that which it was
 * in. why may be NULL. Logged when that is news. */

int host_messages_most(const struct host *, int64_t now_ms); /* 0: not known */
void host_limited(struct host *, int messages, int64_t now_ms);
/* It takes no more on one connection. */

bool host_out(const struct host *, int64_t now_ms);
bool host_answers(const struct host *); /* or nothing speaks against it */

#endif
