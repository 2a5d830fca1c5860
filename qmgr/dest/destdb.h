/* destdb.h - the room of destinations: FINCH's destination database, hosts, sites and connections.
 *
 *	next hop --> site -- queue --> whose turn is it? (sched/)
 *	              |  ^                      |
 *	              |  +---- dispatch <-------+ an entry
 *	              |           |
 *	              +--> hosts  +--> connection, a place in it --> smtpc
 *	                     ^                                         |
 *	                     +--- how it went: up, out, how many ------+
 *
 *	site.c		a destination: its hosts, and its queue for the scheduler
 *	site_name.c	its key, and its name in that (pure)
 *	site_run.c	what is to be done about one at which something has changed
 *	site_hosts.c	which of its hosts is next
 *	site_waiting.c	who would use a connection to a host, if there were one
 *	site_health.c	whether it is alive; what happens to its mail when it dies, and when it is alive again
 *	site_refusal.c	what to do when all its hosts refuse to talk
 *	site_places.c	where an entry can go now
 *	site_rate.c	when the next delivery may begin
 *	site_pace.c	what its hosts let through; site_answers.c: what they answer, and what comes of that
 *	learnt_pace.c	the numbers of it (pure)
 *	agreement.c	do the last refusals speak of the host, whatever their words?
 *	site_window.c	what connections and deliveries tell its window, and what that allows
 *	site_hour.c	what became of its mail in the last hour
 *	site_domains.c	whose mail has gone there by relays
 *	remembered.c	how wide its window was, for when it is known again
 *	host.c		one host: up, out, probed; how many connections it takes
 *	leased.c	connections to it that the nodes of a cluster share; leased_heard.c: the answers
 *	speed.c		how far and how fast it is, and what that makes of a connection (pure)
 *	destdb_choose.c	which host gets a new connection (pure)
 *	destdb_text.c	what is kept over restarts, as text; host_text.c: of one host; fields.c: how
 *	conn.c		the connections that smtpc holds for us, and what each carries
 *	conn_events.c	what comes back from them
 *	conn_state.c	what each is doing, and every number that follows from it
 *	conn_places.c	how much each may carry, and the lists that say so
 *	indoubt.c	messages sent completely and never answered: alone, on the same host first
 *	dispatch.c	the binder: places on ready connections, and new connections
 *	early.c		the other binder, as Postfix does it: for a simulation
 *	site_limits.c	the limits of a site, a row each
 *	admission.c	which of them holds back its next entry, for dispatcher and explain alike
 *	constraint.c	what is said of each, and who sees to it
 *	provider.c	receivers with many sites, and those that wait for what holds for all of them
 *	source.c	addresses of ours that connections come from: missing, refused, rated
 *	congestion.c	warnings while the active queue fills up
 *	destdb_check.c	for tests: every number, counted again
 *	pooling.c	what other nodes of the cluster are told about hosts; pooling_heard.c: what they tell
 *	suspend.c	sites, hosts and domains that the operator has suspended; suspending.c: what follows from that
 *	edges.h		the threads that notes are posted to
 *
 * No two of them call each other, not by way of others either (tests/circles): what is found out lies below, what is
 * done about it above. What is in the queue of a site, or what mail does, is seen to by site_run(), once a wake-up.
 *
 * The record of a host also keeps how many messages a host may be sent before it has answered the first: one,
 * and one more with each that it answers well, until a connection breaks or content turns out to
 * have been sent for nothing; and the mode in which it did not lose count of the commands, for a day.
 *
 * It knows entries and whose turn they are, but not what becomes of a message: that the thread around it
 * does (struct destdb_thread). Included by qmgr/; includes sched/, spool/ and base/.
 *
 * OWNERSHIP  One struct destdb a queue manager, embedded in that (thread.h); it owns every object in its
 *            tables. The record of a host is collected when no site and no connection refers to it,
 *            and nothing is known that is worth keeping.
 * THREAD     qmgr.
 * ERRORS     None.
 * SEE        FINCH 2007.
 */
#ifndef QMGR_DEST_DESTDB_H
#define QMGR_DEST_DESTDB_H

#include "base/clock.h"
#include "qmgr/dest/edges.h"
#include "qmgr/dest/host.h"
#include "qmgr/dest/site_hour.h"
#include "qmgr/sched/transport.h"

struct conn;
struct entry;
struct peer;
struct site;
struct work;

/* The room asks this of the thread around it. */
struct destdb_thread {
	void (*settle)(void *context); /* a timer has touched sites: go through them */

	void (*take)(struct conn *, struct entry *, struct delivery *);
	/* Verdicts came back: record them. Recipients that have none stay in the entry; the others are
	 * no longer in memory. */

	void (*defer)(struct site *, struct entry *, struct verdict *why, bool untried);
	/* All recipients of the entry have this verdict, without a delivery; none stays in it. untried: it
	 * counts as no attempt. */

	void (*hold)(struct entry *);
	/* An entry is back, and would wait for another connection: recipients of domains that the operator has suspended are put
	 * off, and stay in it no more. */

	void (*record)(struct site *, struct entry *, struct verdict *const *verdict);
	/* The same for an entry that was bound early (early.h): one verdict for each recipient. */

	bool (*overdue)(const struct work *);
	/* Its lifetime is over, or its sender is to be told of the delay: it is not to be kept waiting here. */

	void (*check)(struct work *);
	/* Something of it has ended: if that was the last, so does the message, which may be freed. */

	void (*move)(
		struct site
			*); /* what waits there, and is to go from another source now, goes there */

	bool (*may_move)(const struct entry *); /* in flight: there is one for its mail */

	bool (*renew)(struct peer *);
	/* One of its entries is about to be served: is its next hop known well enough? True: it was not, and all of them have left, to
	 * come back when it is. The peer may be gone. */

	void (*resumed)(void *context, const char *flow);
	/* Its mail in the queue is due; NULL: what says that a site or host is suspended, since nobody knows which. */

	void *context; /* of settle and resumed */
};

struct destdb {
	struct scheduler *sched;
	struct qmgr_edges edges;
	struct destdb_thread thread;
	void (*bind_early)(void *context, struct peer *); /* NULL: entries are bound late */

	/* hash tables (uthash) */
	struct site *sites;	       /* by key */
	struct host *hosts;	       /* by key */
	struct conn *conns;	       /* by number */
	struct provider *providers;    /* by key */
	struct source *sources;	       /* by name */
	struct suspended *suspended;   /* by name */
	struct remembered *remembered; /* by the key of a site */
	struct site **numbered;	       /* by number: sites that mail in the queue waits for */
	unsigned last_site;	       /* number given last */
	struct site_hours hours;       /* of its sites */

	struct few deliveries; /* of one recipient, as most are */
	uint64_t last_conn;    /* number of the newest connection */
	uint64_t rounds;       /* of qmgr_thread_settle(), and those that idle connections begin */
	bool given;	       /* something, since the last of them began */
	int64_t congested_ms;  /* steady clock: the last warning of that; 0: none */
	struct list scarce;    /* struct host: a connection is idle that other nodes wait for */
	struct list changed; /* struct host: what is known of it may be to be told to other nodes */
	bool learnt;	     /* something about hosts that is to outlive the process */
	uint32_t resumes;    /* suspensions of domains that have ended */
	uint32_t reloads;    /* of the settings */
};

void destdb_init(struct destdb *, struct scheduler *, const struct destdb_thread *);
void destdb_fini(struct destdb *);
/* Forget all sites and hosts. No message is left, and no connection: conns_free(). */

void destdb_check(const struct destdb *);
/* Assert every number of connections and entries, counted again from the lists. For tests and simulations;
 * between two wake-ups. Walks everything. */

void destdb_collect(struct destdb *); /* the records of what nobody has asked for lately */

static inline int64_t destdb_now_ms(const struct destdb *db) /* steady clock, of this wake-up */
{
	return scheduler_now_ms(db->sched);
}

/* A time of the steady clock on the wall clock. */
static inline int64_t destdb_wall_ms(const struct destdb *db, int64_t steady_ms)
{
	return clock_wall_ms() + steady_ms - destdb_now_ms(db);
}

struct host *destdb_get(struct destdb *, const struct transport *, const union address *,
			const struct conf_source *, const char *tls, struct credential *);
/* The record, made when it is unknown, with a reference. The source: whose address connections come from; NULL: that of the
 * transport. tls: the policy that its connections meet, of this host. */

const struct host *destdb_same_host(const struct destdb *, const struct transport *,
				    const struct host *, const struct conf_source *);
/* The same for connections from that source; NULL: nothing is known of it. */

struct host *destdb_host(struct destdb *, const char *key, const union address *);
/* The same by its key, without a reference. */

void host_free(struct destdb *, struct host *);

#endif
