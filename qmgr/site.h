/* site.h - a destination: Postfix's queue.
 *
 * The transport and the hosts, in their groups: domains served by the same hosts share a site, its
 * window and its connections. All groups count, since a backup host of one domain refuses the mail
 * of another. DIFFERS: Postfix's destination is the next-hop domain; a few providers serve most
 * domains today. destination_by = "domain" gives that way back.
 *
 *	entries wait --> a connection is ready and has a place --> PLACED
 *	      |
 *	      +--> none has --> the window has room --> HUNGRY
 *	      |
 *	      +--> dead, or no host in service and none connecting --> deferred with that failure
 *
 * Whose turn it is, and what becomes of it, is the transport's matter: selection.h, dispatch.h.
 *
 * STATES     For the scheduler QUIET, PLACED, HUNGRY (transport.h), assessed when something has
 *            changed. Alive; dead (its window is closed) until dead_until_ms.
 * OWNERSHIP  The scheduler's table; collected when nothing refers to it.
 * THREAD     qmgr.
 */
#ifndef QMGR_SITE_H
#define QMGR_SITE_H

#include "qmgr/destdb.h"
#include "qmgr/pace.h"
#include "qmgr/window.h"

struct conn;
struct peer;

struct site {
	char *key;	  /* transport and name */
	const char *name; /* in key; for log and operator */
	struct transport *transport;
	struct qmgr *qmgr; /* for its timer */
	struct window window;
	int nhost;
	struct site_host *hosts;
	int refs;	     /* next hops that lead here */
	struct list peers;   /* struct peer with entries that wait */
	int64_t waiting;     /* entries in them */
	struct list granted; /* struct peer with entries that are granted */
	int64_t ngranted;    /* such entries: never more than connections that are not ready */
	struct list open;    /* struct conn, ready and with a free place: newest first */
	struct list rest;    /* struct conn, connecting or full */
	int connections;     /* in both */
	int connecting;
	int ending;		      /* told to close */
	int slow;		      /* of them, beside which another host may be tried */
	int busy;		      /* connections that carry something */
	int64_t dead_until_ms;	      /* steady clock */
	struct verdict *last_failure; /* or NULL */
	struct verdict *last_verdict; /* on a recipient, of one of its hosts; or NULL */
	int64_t verdicts;	      /* such ones, in all */
	bool suspended;		      /* see suspend.h */
	struct pace pace;	      /* destination_rate */
	int64_t delay_until_ms;	      /* destination_rate_delay */
	struct timer wake;
	struct list in_dirty;
	struct list in_full;   /* a full host's: waits for it to have room */
	struct list in_parked; /* job->parked: its message may not have another connection */

	/* selection.h */
	enum site_state state;
	struct heap order; /* struct peer that can be selected */
	struct shelf *shelves;
	struct heap_item in_turn; /* transport->sites[state] */
	UT_hash_handle hh;
};

struct site *site_get(struct qmgr *, struct transport *, const char *name);
void site_set_hosts(struct site *, struct site_host *, int n);
/* Takes the array and its references. */

void site_touch(struct site *);
/* Something has changed: scheduler_settle() runs it. */

void site_run(struct site *);
/* Serve what is granted, and find its state. */

void site_defer_all(struct site *, struct verdict *why);
/* Nothing can be delivered here now: all that waits shares this fate. */

void site_fail_all(struct site *);
/* The same with the last failure; where all hosts refuse to talk, with that, or it is returned:
 * site_refusal.c. */

int site_limit(const struct site *); /* connections that it may have now */

enum destdb_choice site_choose_host(struct site *, const struct peer *, struct host **,
				    int64_t *wake_ms);
/* For a new connection, begun for the first entry of this peer. */

void site_stuck(struct site *, enum destdb_choice, int64_t wake_ms);
/* It would grow, and no host takes a connection: wait for one, or give up. */

void site_feed_waiting_for(struct host *);
/* A connection to a host has ended: the first that waits for it looks; with the last one, all. */

bool site_has_quicker(const struct site *, const struct host *);
/* Another host of the same preference is in service, and not slow. */

bool site_has_other(const struct site *, const struct host *);
/* Another is in service and answers, of the same preference or, where backup_attempt_delay lets it be
 * tried beside this one, of a lesser. */

void site_prefer(struct conn *, bool tried_beside);
/* It has become ready. Those to hosts of lesser preference end; where there is a better one, this is
 * left for mail that must go to its host. One that was tried beside others ends when they are all
 * that the site may have. */

void site_reset(struct site *);
/* Forget what was learnt about it and its hosts. */

bool site_idle(const struct site *); /* nothing waits, nothing is open */
void site_free(struct site *);

/* site_places.c */

struct conn *site_place(const struct site *, const struct peer *);
/* A connection with a place for the first entry of this peer, now; NULL: none. */

bool site_paused(const struct site *);
int64_t site_paused_until_ms(const struct site *); /* steady clock; what is past is no pause */
bool site_one_at_a_time(const struct site *);	   /* it has a delay between deliveries */
void site_count_delivery(struct site *);	   /* for its rate: one begins */
void site_delivery_ended(struct site *);	   /* for its delay */

/* site_feedback.c */

void site_worked(struct site *, int busy);
/* Feedback: a delivery that did not fail in connection or handshake, while so many were busy. */

void site_connection_failed(struct site *, struct host *, struct verdict *why, bool fatal);
/* Feedback: a connection was of no use. fatal: it counts towards the site's death. */

void site_revive(struct site *); /* if it is dead and that time is over */

void sites_revive(struct qmgr *);
/* Forget what is known to be dead: the operator wants it tried. */

#endif
