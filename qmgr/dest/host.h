/* host.h - what is known about one host: an address and port, and what connections to it have: source
 * address (that of the transport, or of a source: source.h), TLS policy, client certificate, and as whom they have logged in. Who could not prove one identity
 * may well prove another, or none, so that these are hosts of their own: they fail, and lend their connections,
 * apart from each other. So mail that goes as somebody never meets a connection of another, or of nobody.
 *
 *	       failed, and serves nobody           its time has come: one probe
 *	UP ---------------------------------> OUT ----------------------------> PROBED
 *	 ^                                     ^                                  |  |
 *	 |                                     +--------- the probe failed -------+  |
 *	 +------------------------------ a connection is ready ----------------------+
 *
 * Time out is 1 s, and twice as long after each further failure, up to host_backoff_max; from the third on about so long (base/about.h).
 * Connections that were under way together fail together: that counts once.
 *
 * A host that turns connections away while n serve takes n: that is its limit, until one more is tried.
 * That is 1 s later, and 2 s, since it may have been chance; then a minute, and as long as the answer is
 * the same twice as long each time, up to an hour. One that only has not answered in time is believed
 * to have turned a connection away when another that was begun later comes to the same.
 *
 * What a host is called is the site's to say (struct site_host): any domain may name any address
 * as its mail host, so that no name may stand in a record that others share.
 *
 * OWNERSHIP  destdb's table. Connections and the hosts of sites refer to it.
 * THREAD     qmgr.
 * STATES     As drawn; host_move() is the one mover.
 * ERRORS     None.
 * SEE        FINCH 2007, the retry list.
 */
#ifndef QMGR_DEST_HOST_H
#define QMGR_DEST_HOST_H

#include "base/delivery.h"
#include "base/fact.h"
#include "base/keyed_hash.h"
#include "base/list.h"
#include "qmgr/dest/leased.h"
#include "qmgr/dest/speed.h"

enum {
	HOST_BACKOFF_FIRST_MS = 1000,
	HOST_ABOUT_FAILURES = 3,      /* from then on an eighth sooner or later, by chance */
	HOST_LIMIT_CHANCE_MS = 1000,  /* it may be chance: a limit is believed so long at first, */
	HOST_LIMIT_TWICE_MS = 2000,   /* then so long, */
	HOST_LIMIT_FIRST_MS = 60000,  /* then so long, and twice as long each time */
	HOST_LIMIT_MOST_MS = 3600000, /* and at most */
	HOST_PLAIN_MS = 3600000,      /* broken TLS is believed so long, */
	HOST_PLAIN_NAMES = 1000,      /* under so many names: the one that it ends for first goes */
	HOST_MODE_MS = 24 * 3600000,  /* and the simpler mode */
	HOST_STALE_MS = 3600000,      /* what nobody has used for so long is forgotten */
	HOST_BACKOFF_KEPT_MS = 300000, /* over a restart a host is out for so long at most */
	HOST_TOLD_ALIKE = 4,	       /* connections that end so say how much it takes on one */
	HOST_COUNT_MAX = 1000000,      /* failures are not counted beyond that */
	HOST_PACE_UNIT = 1000, /* a pace is kept, and told, as deliveries in so many seconds, */
	HOST_PACE_MOST = 1000000000, /* at most */
};

/* X(state, text, states that may follow) */
#define HOST_STATES(X)                                                                             \
	X(UP, "up", HOST_TO(OUT))                                                                  \
	X(OUT, "out", HOST_TO(PROBED) | HOST_TO(UP))                                               \
	X(PROBED, "probed", HOST_TO(OUT) | HOST_TO(UP))

#define HOST_TO(state) (1u << HOST_##state)

enum host_state {
#define X(state, ...) HOST_##state,
	HOST_STATES(X)
#undef X
};

/* How many connections it was seen to take. */
struct host_limit {
	int n;		  /* of all nodes; 0: none is known */
	int64_t again_ms; /* steady clock: then one more may be tried */
	int64_t wait_ms;  /* how long that was put off */
};

/* A name under which its TLS is broken: that says nothing about another name. */
struct host_plain {
	struct host_plain *next;
	int64_t until_ms; /* steady clock */
	char name[];
};

/* How much mail it was found to let through: site_pace.h, which learns it by site. */
struct host_pace {
	double rate;	     /* deliveries a second; 0: any */
	int64_t since_ms;    /* wall clock: when it refused first */
	struct verdict *why; /* or NULL */
};

/* The knowledge of other nodes about it: pooling.h. */
struct host_pooling {
	struct fact *fact;	      /* the newest of each part, told or heard; NULL: none */
	uint64_t as[FACT_PART_COUNT]; /* what it was like then */
	struct list changed;	      /* in destdb's, of those that may be to be told */
	int64_t r_us, s_us, depth;    /* measured, as it was told or heard last, */
	int64_t pace;		      /* likewise, in a thousand seconds */
	int doubts;		      /* told */
	int64_t doubts_of_all;
	int64_t measured_ms;	/* steady clock: such a measure was told last; 0 */
	int64_t asked_ms;	/* steady clock: leave to probe it was asked for; 0 */
	int64_t leave_until_ms; /* steady clock: leave was given; 0 */
};

/* As it answered EHLO when a connection was ready last. */
struct host_offers {
	bool known, smtputf8;
	uint64_t size_max; /* 0: no limit */
};

/* Connections in a row that it has ended by 421 after as many messages, while it took mail on others. */
struct host_told_after {
	int messages, times;
	bool took; /* a message, since the last of them */
};

/* The last connection that it has ended at a RCPT, behind so many that it had accepted. */
struct host_ended_at {
	uint32_t recipients;
	bool took; /* a message, since */
};

struct host {
	char *key;
	char *peer;	       /* [address]:port */
	char *tls;	       /* base/tls_policy.h, of this host; NULL until a site has it */
	union address address; /* with the port */
	int refs;	       /* sites and connections */
	struct credential *credential; /* a reference: as whom connections log in; or NULL */
	enum host_state state;
	struct list sites;	       /* struct site_host */
	const struct transport *first; /* that of the first of them ever, to be compared with */
	bool mixed;		       /* there are, or were, some of other transports */

	/* of its connections; conn_move() keeps them */
	int connections; /* connecting or ready */
	int ready;
	int unanswered;	   /* connecting, and no mail waits for it */
	int nidle;	   /* ready connections that carry nothing, in: */
	struct list idle;  /* struct conn, the longest idle first */
	struct list conns; /* struct conn, those not closed */
	struct list full;  /* struct site_host: its site would use a connection if there were one */

	int64_t opened_ms;   /* steady clock: the last connection was begun; 0: never */
	int64_t heard_ms;    /* steady clock: it answered mail; 0: never */
	int64_t good_ms;     /* steady clock: a connection that was of use ended; 0: never */
	bool proven;	     /* a connection to it has been ready */
	int failures;	     /* that counted, in a row */
	unsigned era;	     /* changes with each of them */
	int64_t failing_ms;  /* steady clock: the first of them since this process began; 0: none */
	int64_t failed_ms;   /* steady clock: the last of them */
	int64_t retry_ms;    /* steady clock: a probe is due; while not UP */
	struct verdict *why; /* the last failure, or NULL */
	char *why_name;	     /* by which name the host was called in it */
	struct host_offers offers;
	bool told; /* it was ready, and would take nothing: only mail shows that this is over */
	bool login_refused; /* that was the login; until a connection is ready */
	bool refuses;	    /* that was a 5xx to the connection, or to EHLO and HELO */
	bool unfit; /* or, of one for mail with REQUIRETLS, that it can't do that: mail is returned when all refuse */
	int64_t slow_until_ms; /* steady clock: another was quicker, and goes before it until then */
	struct host_plain *plain;
	bool suspended; /* see suspend.h: out */
	int doubts;	/* deliveries in doubt since the record was made, for the operator */
	int depth;	/* messages in flight that it has earned on one connection */
	enum connection_mode mode;
	int64_t mode_until_ms; /* steady clock: then all that it announces is tried again */
	int ended_after;       /* messages: it ended a connection then, unasked; 0: none lately */
	struct host_told_after told_after;
	int hangs_up_after; /* messages: the most that it has answered on one that it hung up; 0: it does not */
	int messages_most; /* on one connection, as was found out, until: */
	int64_t messages_until_ms;
	struct host_ended_at ended_at;
	uint32_t recipients_most; /* of one message at once, as was found out, until: */
	int64_t recipients_until_ms;
	struct host_limit limit;
	struct host_pace pace;
	int64_t hung_ms; /* steady clock: a connection was not answered in time while others served, and
			  * none has become ready since; 0 */
	struct speed speed;
	struct leased leased; /* in a cluster: how many of its connections this node may have */
	struct host_pooling pooling;
	UT_hash_handle hh;
};

bool host_failed(struct host *, struct verdict *why, const char *name, unsigned era, int64_t now_ms,
		 int64_t backoff_max_ms);
/* A connection that was begun in that era was of no use: never ready, or lost before it carried
 * anything. True: the host, which was up, is out now. */

void host_cap_backoff(struct host *, int64_t backoff_max_ms, int64_t now_ms);
/* A host that is out is so for no longer than that since it has failed. */

void host_login_refused(struct host *, bool refused, const struct verdict *why);
/* Before host_failed(): was it the login? Then a password is tried again only after host_backoff_max. Logged once, until a
 * connection is ready. */

bool host_hung(struct host *, int64_t opened_ms, int64_t now_ms);
/* A connection that was begun then was not answered in time while the host serves others. True: as one
 * before it, so that it counts as turned away. */

bool host_turned_away(struct host *, struct verdict *why, const char *name, int64_t now_ms);
/* The same while it serves others: so many are its limit. True: which is news. */

bool host_worked(struct host *, int64_t now_ms);
/* A connection is ready, and counted. True: it was out, and is back. */

void host_carried(struct host *); /* mail came to a verdict there */

const char *host_terms(const struct host *);
/* The part of its key behind its address: its port, how a connection is made to it, and as whom. As long as the host. */

int64_t host_pace_units(double rate);
/* As it is kept, and told: a slow one is one unit, for 0 says that there is none. */

void host_paced(struct host *, double rate, int64_t since_ms, struct verdict *why);
/* So many deliveries a second a site found it to let through; 0: any. For other nodes. */

void host_probe(struct host *); /* a probe is under way */
void host_probe_missed(struct host *, int64_t now_ms);
/* The probe has ended without an answer, and nothing else is under way: another is due soon. */
void host_recall_out(struct host *, int64_t retry_ms);
/* So it was when the process ended; retry_ms 0: a probe is due. */

void host_heard_out(struct host *, const struct host *heard, const char *node, int64_t now_ms);
/* Another node has found it out: its failures, retry_ms and why. A probe that is under way here goes on. */

void host_heard_up(struct host *, bool proven, const char *node);
/* Another node has found it up. */

void host_wait_for_probe(struct host *, int64_t now_ms);
/* Another node probes it: here no probe is due for a second. */

bool host_probe_due(const struct host *, int64_t now_ms);
void host_probe_now(struct host *, int64_t now_ms); /* whatever its time */

void host_forget(struct host *);
/* All that was learnt about it, but for its depth (conn_set_depth()): as if it had never been
 * tried. */

void host_slow(struct host *, int64_t now_ms);
/* Its TCP handshake takes long: for ten minutes it comes after all others. It may work. */

void host_ended_well(struct host *, int64_t now_ms);
/* A connection that was of use has ended in order. */

bool host_serves(const struct host *, int64_t now_ms);
/* Connections are ready; or were a moment ago, and have ended in order, as of age. */

bool host_out(const struct host *);	/* it gets no connection but a probe */
bool host_answers(const struct host *); /* or nothing speaks against it */
bool host_silent(const struct host *,
		 int64_t now_ms); /* or out: no connection is ready, and one was slow lately */

bool host_has_room(const struct host *, int64_t host_limit, int64_t now_ms);
/* For one more connection: host_limit is the configured one, 0 for none. */

int64_t host_room_ms(const struct host *);
/* Steady clock: when one more than its own limit may be tried; 0: it has none. */

bool host_plain(const struct host *, const char *name, int64_t now_ms);
void host_set_plain(struct host *, const char *name, int64_t until_ms);
int64_t host_plain_until_ms(const struct host *, const char *name); /* 0: never was */

enum connection_mode host_mode(const struct host *, int64_t now_ms);
void host_confused(struct host *, enum connection_mode next, struct verdict *why, const char *name,
		   int64_t now_ms);
/* The host lost count, was hurried, or choked on a ClientHello: the next connection is to be in this mode, and in that which it was
 * in. why may be NULL. Logged when that is news. */

int host_messages_most(const struct host *, int64_t now_ms); /* 0: not known */
void host_takes_messages(struct host *, int messages, int64_t now_ms);
/* The host takes no more on one connection. */

void host_hung_up(struct host *, int messages);
/* The host ended a connection on which it had answered so many: known with the first message that is in doubt by that. */

void host_ended_after(struct host *, int messages, int64_t now_ms);
/* The host ended a connection with others under way: two in a row after as many mean that it takes no more. */

bool host_told_after(struct host *, int messages, int64_t now_ms);
/* The host has said 421 on a connection on which it had answered so many: some in a row mean that it takes no more. True: that is
 * news. One message says nothing, since a host that lets little through takes as many. */

uint32_t host_recipients_most(const struct host *, int64_t now_ms); /* 0: not known */
bool host_ended_at(struct host *, uint32_t recipients, bool told, int64_t now_ms);
/* The host has ended a connection at a RCPT, behind so many that it had accepted. It takes no more at once if it has told so, or
 * if it has ended the one before at as many and has taken a message since. True: that is news. */

void host_took_message(struct host *); /* on any connection */

bool host_stale(const struct host *, int64_t now_ms);
/* Nobody uses it, and nothing that is known about it is worth keeping. */

struct verdict *host_why(const struct host *, const char *name);
/* A reference to its last failure, in which it is called by this name; NULL: there is none. */

struct verdict *host_called(struct verdict *, const char *from, const char *to);
/* A reference to the verdict, or to one like it in which the host that is called `from` is called
 * `to`. */

const char *host_mode_name(enum connection_mode);
void host_fini(struct host *);

void host_unref(struct host *);
/* The record outlives its last user: destdb_collect() removes it. */

#endif
