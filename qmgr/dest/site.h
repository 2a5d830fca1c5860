/* site.h - a destination: Postfix's queue.
 *
 * The transport and the hosts, in their groups: domains served by the same hosts share a site, its
 * window and its connections. All groups count, since a backup host of one domain refuses the mail
 * of another. DIFFERS: Postfix's destination is the next-hop domain; a few providers serve most
 * domains today. destination_by = "domain" gives that way back. Relays share no site with MX hosts of the
 * same names: their hosts are others, or are to prove and be told other things.
 *
 *	entries wait --> a connection is ready and has a place --> PLACED
 *	      |
 *	      +--> none has, or another connection serves it sooner --> HUNGRY
 *	      |
 *	      +--> dead or out --> they wait for site_patience --> parked: back in the queue, until
 *	                           the site lives again
 *
 * Whose turn it is, and what becomes of it, is the transport's matter: selection.h, dispatch.h.
 *
 * STATES     For the scheduler QUIET, PLACED, HUNGRY (queue.h), assessed when something has
 *            changed. Its health, below: site_health_move() is the one mover.
 * OWNERSHIP  destdb's table; collected when nothing refers to it and no mail waits for it,
 *            on disk either.
 * THREAD     qmgr.
 */
#ifndef QMGR_DEST_SITE_H
#define QMGR_DEST_SITE_H

#include "qmgr/dest/destdb.h"
#include "qmgr/dest/destdb_choose.h"
#include "qmgr/dest/site_domains.h"
#include "qmgr/dest/site_pace.h"
#include "qmgr/sched/pace.h"
#include "qmgr/sched/queue.h"
#include "qmgr/sched/window.h"

#define SITE_FROM " from=" /* and its source: the end of its name, where it has one */

struct conn;
struct peer;
struct provider;
struct sharing_want;
struct source;
struct spool_unpark;

/* X(health, text) */
#define SITE_HEALTHS(X)                                                                            \
	X(ALIVE, "alive")                                                                          \
	X(DEAD, "dead")	      /* its window is closed: the cohort limit was reached */             \
	X(OUT, "out")	      /* no host of any group is in service */                             \
	X(REFUSED, "refused") /* they serve, and take no mail (site_pace.h) */                     \
	X(SUSPENDED, "suspended")

enum site_health {
#define X(health, ...) SITE_##health,
	SITE_HEALTHS(X)
#undef X
};

/* Its hosts want nothing from its source: source.h. */
struct source_bar {
	int64_t until_ms; /* steady clock: others go before it; 0: never refused */
	int64_t wait_ms; /* how long that is, twice as long each time; 0: something was taken since */
};

/* Mail that went back to the queue because of it: see SPOOL_UNPARK. */
struct site_parked {
	uint16_t number;   /* of the site; 0: no mail waits for it there */
	uint32_t parked;   /* messages that wait for it to live again */
	uint32_t deferred; /* messages of it, parked ones among them */
	uint32_t slice;	   /* asked for last */
	int64_t verdicts;  /* at that time */
	int64_t asked_ms;  /* steady clock: likewise */
	int leaving;	   /* messages here that will be such */
	bool asking;	   /* the answer may be without those that went there since: */
	uint32_t late, late_parked;
};

struct site {
	char *key;	    /* transport and name: site_name.h */
	const char *name;   /* in key; for log and operator */
	struct queue queue; /* what the scheduler knows of it */
	struct destdb *db;
	struct window window;
	int nhost;
	struct site_host *hosts;
	int refs;	  /* next hops that lead here, and messages that will be deferred for it */
	struct list open; /* struct conn, ready and with a free place: newest first */
	struct list rest; /* struct conn, connecting or full */

	/* of its connections; conn_move() keeps them */
	int connections; /* in both */
	int connecting;
	int ending;    /* told to close */
	int lingering; /* of them, that owe an answer for long, and were not told to end at once */
	int slow;      /* of those connecting, such that no mail waits for */
	int busy;      /* that carry something */

	enum site_health health;
	int64_t down_ms;	      /* steady clock: since when it is not alive */
	int64_t dead_until_ms;	      /* steady clock: where entries are bound early, see qmgr.h */
	struct tls_subject *subject;  /* whose mail has last opened a connection; or NULL */
	struct verdict *last_failure; /* or NULL */
	struct verdict *last_verdict; /* on a recipient, of one of its hosts; or NULL */
	int64_t verdicts;	      /* such ones, in all */
	int64_t unreached;	      /* connections that were of no use, in all */
	struct site_domains *domains; /* by relays; or NULL */
	struct site_hour *hour;	      /* or NULL: site_hour.h */
	bool suspended;		      /* see suspend.h */
	struct site_parked parked;
	struct pace pace; /* destination_rate */
	struct site_pace
		own_pace; /* what its hosts let through; or what those of its provider do, */
	struct site_pace *pacing;  /* which is then the provider's. provider_join() keeps it */
	int64_t under_way;	   /* deliveries, on all its connections: conn_load() counts them */
	int64_t owed;		   /* of them, on such whose host owes an answer for long */
	int64_t overdue_ms;	   /* steady clock: looked for mail that has waited too long */
	int64_t delay_until_ms;	   /* destination_rate_delay */
	struct provider *provider; /* whose its hosts are; or NULL. provider_join() keeps it */
	struct list
		in_provider; /* provider->for_connection, or for_rate, while that holds this back */
	bool for_rate;	     /* which */
	struct source *source; /* where its connections come from; or NULL. source_join() sets it */
	struct source_bar bar; /* without a provider */
	struct list in_source; /* source->for_rate, while that holds this back */
	struct list in_probing; /* transport->probing, while a probe waits for a connection */
	bool moving;		/* what waits may be to go from another source, or elsewhere */
	bool called;		/* by that, and has not looked yet */
	struct timer wake;
	bool yielded_to;     /* it waits for its hosts and has no connection: conn_yields() */
	uint64_t fed;	     /* round of the scheduler in which it was told of a connection, */
	struct host *fed_by; /* by this host, and has not looked yet; or NULL */
	uint64_t left;	     /* round in which it has left room at a host to another transport's */
	UT_hash_handle hh;
};

static inline struct site *site_of_queue(const struct queue *queue)
{
	return (struct site *)((const char *)queue - offsetof(struct site, queue));
}

struct site *site_get(struct destdb *, struct transport *, const char *relays, const char *name);
/* relays: as site_name_key() takes them. */

void site_set_hosts(struct site *, struct site_host *, int n);
/* Takes the array, what hangs on it and its references. Connections end to an address that must prove something
 * else now, and to one that is not among them if it has other terms than they (host_terms()). */

static inline void site_touch(struct site *s)
{
	scheduler_touch(&s->queue);
}
/* Something has changed: qmgr_thread_settle() runs it. */

void site_wake_at(struct site *, int64_t at_ms); /* steady clock: touch it then, or sooner */

void site_configure(struct site *);
/* After provider_configure(): its transport may have other settings now. */

void site_reset(struct site *, bool everywhere); /* everywhere: the other nodes are told */
/* Forget what was learnt about it and its hosts. */

bool site_idle(const struct site *); /* nothing waits, nothing is open */
void site_free(struct site *);

/* site_run.c */

void site_run(struct site *);
/* Serve what is granted, see to its health, and find its state. */

/* site_hosts.c */

enum destdb_choice site_choose_host(struct site *, const struct peer *, struct site_host **,
				    int64_t *wake_ms);
/* For a new connection, begun for the first entry of this peer. */

bool site_has_quicker(const struct site *, const struct host *);
/* Another host of the same preference is in service, and not slow. */

bool site_has_other(const struct site *, const struct host *);
/* Another is in service and answers, of the same preference or, where backup_attempt_delay lets it be
 * tried beside this one, of a lesser. */

bool site_prefers_other(const struct site *, const struct host *);
/* One of a better preference has been ready before, though it may be out or busy now. */

bool site_equal_may_take(const struct site *, const struct host *, bool international,
			 uint64_t bytes);
/* Another of the same preference offers what such mail needs, or has not been asked yet. */

const struct site_host *site_host_of(const struct site *, const struct host *);
/* The site's row of that host; NULL: the site has other hosts now. */

bool site_overflows(const struct site *);
/* Its mail would wait for the connections to its best hosts for longer than backup_attempt_delay:
 * hosts of lesser preference may be used beside them where those take no further connection. */

bool site_keeps_back(const struct site *, const struct host *);
/* A connection to it that is a reserve is for what overflows: a better host is in service, and nothing does. */

bool site_has_backups(const struct site *); /* hosts of several preferences */
int64_t site_down_until_ms(const struct site *);
/* Steady clock: when the next host of one that is not alive is tried; 0: it is alive, or suspended. */

bool site_proven(const struct site *); /* one of its hosts has answered before */

/* site_places.c */

struct conn *site_place(const struct site *, const struct peer *);
/* A connection with a place for the first entry of this peer, now; NULL: none, or it is better off
 * with another connection. */

/* site_rate.c */

bool site_rated(const struct site *); /* by what the configuration says */
int64_t site_rated_until_ms(const struct site *);
bool site_paused(
	const struct site *); /* by that, by what its hosts say (site_pace.h), or by its provider */
int64_t site_paused_until_ms(const struct site *);
/* Steady clock; what is past is no pause. Without what it shares: there it stands in line (provider.h). */
bool site_one_at_a_time(const struct site *); /* it has a delay between deliveries */
int64_t
site_rate_due_ms(const struct site *);	    /* steady clock: destination_rate lets the next begin */
bool site_rate_shared(const struct site *); /* with other nodes */
void site_count_delivery(struct site *);    /* for its rate: one begins, and waits no more */
void site_delivery_ended(struct site *);    /* for its delay */
void site_cap_rate(struct site *);	    /* both are others now: so far ahead at most */

void site_reserve(struct site *);
/* Where the rate is shared: want deliveries reserved, if it has mail and will soon have none. */

void site_reserved(struct destdb *, struct sharing_want *); /* the answer; takes it */

/* site_waiting.c */

void site_wait_for_hosts(struct site *);
/* The site could use a connection to any of its hosts: host->full. */

void site_wait_no_more(struct site *);

void site_feed_waiting_for(struct host *);
/* A connection to a host has ended, or is idle: the first that waits for it looks; with the last
 * one, all. */

void site_pass_on(struct site *);
/* The site has looked: what it makes no use of, and its own idle connections, are for the next. */

/* site_window.c */

int site_limit(const struct site *);	 /* connections that it may have now */
bool site_may_grow(const struct site *); /* its window allows another connection */

void site_worked(struct site *, int busy);
/* Feedback: a delivery that did not fail in connection or handshake, while so many were busy. */

void site_connection_failed(struct site *, struct host *, struct verdict *why, bool fatal);
/* Feedback: a connection was of no use. fatal: it counts towards the site's death. */

void site_adopt_failure(struct site *, struct verdict *why);
/* This is what was wrong last. */

void site_revive(struct site *);
/* Something worked: if it was dead, it is no more. */

void site_host_changed(struct host *);
/* The host is out, or back: its sites look. */

/* site_refusal.c */

struct verdict *site_refusal(const struct site *, bool of_mail);
/* A reference: all its hosts refuse to talk, which may mean, of its mail, that it is returned. NULL: some
 * do not. */

/* site_health.c */

void site_see_to_health(struct site *);
/* Find its health, open probes that are due; where it is not alive, and has not been for some time,
 * what waits is parked. */

struct verdict *site_keeps_waiting(const struct site *);
/* A reference: what a host of it has said or is that mail waits for; or NULL. */

void site_call_back(struct site *);
/* The site is alive: have parked mail come back, in slices that grow as it is delivered. */

void site_called_back(struct destdb *, struct spool_unpark *);
/* The spool's answer. */

void site_try_now(struct site *);
/* The operator wants its hosts tried, whatever they did before. */

const char *site_state_name(const struct site *);
/* Its health by its name; alive it may be "paced" (its hosts have refused more than it gets now), or "limited" (they take no more
 * connections than it has). */

int site_badness(const char *state);
/* Of that name, for who waits: 0 is alive; dead, out and refused are alike. */

void site_number(struct site *);       /* give it one, for mail that goes back to the queue */
void site_ask_for_mail(struct site *); /* whether any is still there; the answer comes later */

#endif
