/* job.h - a message's work on one transport: job, peers, entries.
 *
 *	message --- job (one a transport) --- peer (one a next hop) --- entry (up to
 *	                                                    destination_recipient_limit recipients)
 *
 * An entry holds recipients of one message and one next hop: with delivery by MX that is one
 * domain, since large providers refuse several in a transaction.
 *
 * STATES     An entry waits in its peer (oldest first), or is in flight on a connection. Of those
 *            that wait some may be granted: selected already, each for a connection that is being
 *            opened. The peer can be selected while it has others.
 * OWNERSHIP  The message owns its jobs, these their peers, these their entries.
 * THREAD     qmgr.
 * SEE        POSTFIX SCHEDULER_README, "The structures used by nqmgr".
 */
#ifndef QMGR_SCHED_JOB_H
#define QMGR_SCHED_JOB_H

#include "base/keyed_hash.h"
#include "qmgr/sched/claim.h"
#include "qmgr/sched/heap.h"
#include "qmgr/sched/line.h"
#include "qmgr/sched/preempt.h"
#include "qmgr/sched/transport.h"
#include "qmgr/sched/work.h"

/* The place in the scheduler's order: the rank of the message, and in front of it who slips past. */
struct label {
	uint64_t order, place;
};

struct job {
	struct work *work; /* of its message */
	struct transport *transport;
	struct claim *claim; /* of its flow */
	struct list in_message;
	struct list in_time; /* transport->jobs, by age */
	struct list peers;   /* struct peer */
	int npeer;
	struct peer *by_way;	 /* those beyond the first few */
	struct list ready;	 /* struct peer that can be selected */
	struct stack stack;	 /* who slipped past whom */
	struct label label;	 /* in the scheduler's order */
	struct line_place home;	 /* in the line of its message, the last */
	struct line_place moved; /* where it has slipped past, if it has */
	int64_t read_entries;	 /* made so far */
	int64_t selected;	 /* of them */
	int64_t routing;	 /* recipients in memory without an entry */
	int64_t concurrency;	 /* places that its entries have, and connections opened for it */
	int64_t rcpt_count, rcpt_limit; /* recipients in memory; slots. See pool.h */
	int size;			/* class of its number of entries, see shelf.h */
	int leads[QUEUE_STATES]; /* shelves on which it is first, by the states of their queues */
	struct heap_item in_size[QUEUE_STATES]; /* those of its class, while it leads any */
	struct list parked;    /* struct queue: would grow for it, see dispatch.h */
	struct list in_parked; /* transport->parked, while there are any */
};

struct peer {
	struct job *job;
	struct list in_job;
	struct way *way;
	struct queue *queue;
	struct list entries;	   /* that wait */
	int waiting, granted;	   /* entries; those selected for a connection to come */
	uint64_t turn;		   /* when it was selected last: least first among peers of a job */
	struct list in_queue;	   /* queue->peers, while entries wait */
	struct list in_granted;	   /* queue->granted, while some are */
	struct list in_ready;	   /* job->ready, as long as it can be selected */
	struct backlog *backlog;   /* of its flow at the queue, likewise */
	struct heap_item in_order; /* backlog->order, likewise */
	struct heap_item in_shelf; /* shelf->peers, likewise */
	struct shelf *shelf;
	UT_hash_handle hh;
};

struct entry {
	struct peer *peer;
	struct list in_peer; /* waiting; in flight: conn->carried */
	struct conn *conn;   /* in flight on it; NULL: waits */
	int returns;	     /* times it came back untouched */
	bool alone;	     /* may have arrived: see indoubt.h */
	unsigned era;	     /* in flight: of its site's pace, when it was given (learnt_pace.h) */
	uint32_t reloads;    /* likewise: that there had been by then */
	int64_t refusals;    /* times that its host refused it for reasons of its own */
	uint32_t
		rcpt_most; /* to be offered at once: a host has ended a connection at more; 0: all */
	uint32_t n;
	uint32_t *recipient; /* indices in the envelope */
	uint32_t only;	     /* is the array as long as there is one */
};

struct job *job_get(struct work *, struct transport *); /* made at first use */

/* How many entries it may have at most, those done included. */
static inline int64_t job_entries(const struct job *job)
{
	return job->read_entries + job->routing + job->work->unread;
}

static inline int64_t job_needed(const struct job *job)
{
	return job_entries(job) - job->selected;
}

void job_add_recipient(struct job *, struct way *, uint32_t recipient);
/* Put one routed recipient into an entry that waits. */

static inline int peer_selectable(const struct peer *p)
{
	return p->waiting - p->granted;
}

const struct entry *peer_first(const struct peer *);

void peer_grant(struct peer *);
/* Select one of its entries for a connection that is being opened. */

void peer_ungrant(struct peer *);
/* That connection is not to be: the entry waits as before. */

struct entry *peer_take(struct peer *);
/* The first entry leaves: the one granted, or else one is selected now. */

struct entry *peer_drop(struct peer *);
void peer_drop_entry(struct entry *);
/* The same without a delivery: nobody pays for it, or is paid. Or one that waits, whichever: job_put_back() is not for such. */

void job_left_place(struct job *);
/* One of its entries is no longer on a connection. */

void job_put_back(struct entry *);
/* The entry was not delivered and not deferred, and is in no list: first in its peer again. */

void job_entry_done(struct entry *);
/* Free an entry that is in no list. */

void jobs_free(struct work *);
/* All jobs of a message, none of whose entries is left. */

#endif
