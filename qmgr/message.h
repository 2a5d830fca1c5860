/* message.h - one message that is being worked on: Postfix's active queue.
 *
 *	arrival -> recipients are read in batches (reader.h) and routed (router.h) -> entries ->
 *	    verdicts -> the next batch ... -> end of the round (round.c):
 *	    a report to the sender if one is owed, stored before what it reports is recorded;
 *	    then back to the spool, with what is left to do or as finished.
 *
 * OWNERSHIP  Owns envelope and content until the end of the round.
 * THREAD     qmgr.
 * STATES     working (recipients unread or in memory) -> reporting (a report is being stored) -> gone.
 */
#ifndef QMGR_MESSAGE_H
#define QMGR_MESSAGE_H

#include "base/keyed_hash.h"
#include "qmgr/sched/work.h"
#include "qmgr/qmgr_thread.h"
#include "spool/spool.h"

struct waiting_recipient {
	struct job *job;
	uint32_t recipient;
};

enum { MESSAGE_ENDS_MS = 60000 };

struct message {
	struct work work; /* what the scheduler sees of it */
	struct qmgr *qmgr;
	bool alike;	   /* its memory is like that of most: qmgr->alike */
	int64_t taken_ms;  /* wall clock: when the scheduler got it */
	bool kept;	   /* cancelled: back in the queue, not gone */
	bool wanted;	   /* the operator wants it back: on hold, or to be tried anew */
	bool stopped;	   /* its flow was suspended: flow_mail.h */
	bool reporting;	   /* a report is being stored, or waits for its turn */
	bool delivers;	   /* all of it was delivered just now; its release says so */
	bool urgent;	   /* the operator wants it tried, whatever its hosts did before */
	struct site *site; /* whose mail it will be in the queue, or NULL */
	bool untried;	   /* some of it could not be tried, for want of a host */
	bool put_off;	   /* some of it was, and deferred for its own sake */
	bool domain_held; /* some of it was put off since its domain is suspended, the first when */
	uint32_t resumes; /* so many domains had been resumed */
	struct timer end; /* an end of it comes, or its sender is to be told: retry_wait_ms() */
	bool interrupted; /* for that */
	bool tells_by;	  /* the delay that is owed is told since the time to deliver by has come */

	/* Of a pseudo-message; else NULL: who gets its verdicts, and for whom. */
	void (*take)(struct message *, uint32_t recipient, struct verdict *);
	struct verifying *verifying; /* verifier.h */

	/* reader.h */
	uint32_t next;	     /* to be read: of the envelope, or of */
	uint32_t *order;     /* of what is read in batches: reading_order.h; or NULL */
	uint32_t nheld;	     /* read and put back: */
	uint32_t *held;	     /* there was no room for them */
	int64_t refilled_ms; /* steady clock */
	struct list in_starved;

	/* router.h */
	int64_t lookups; /* under way, begun for it */
	struct waiting_recipient *to_route;
	size_t to_route_first, nto_route;
	struct list in_router;

	struct list in_reports; /* round.c: its report waits */

	UT_hash_handle hh;
	uint8_t owed[]; /* by recipient: enum report_kind + 1 of what the sender is owed, or 0 */
};

static inline struct message *message_of_work(const struct work *w)
{
	return (struct message *)((const char *)w - offsetof(struct message, work));
}

void message_init(struct qmgr *);
void message_fini(struct qmgr *); /* there are none */

void message_arrived(struct qmgr *, struct spool_arrival *);

struct message *message_pseudo(struct qmgr *, struct envelope *, struct verifying *owner,
			       void (*take)(struct message *, uint32_t recipient,
					    struct verdict *));
/* One that is never sent, and that the spool does not know: its owner adds recipients to its jobs, gets
 * their verdicts by take(), and frees it. Takes the envelope. */

void message_cancel(struct qmgr *, uint64_t id, bool keep);
/* Let go of it as soon as nothing of it is under way; for good, or back to the queue. */

void message_set_ends(struct qmgr *);
/* MESSAGE_ENDS_MS have passed since the last call, or the configuration is another: so are the ends of messages that
 * come near. */

void message_moved(struct qmgr *, struct spool_moved *); /* frees the note */
void message_reported(struct qmgr *, struct spool_store *);
/* The answer of the spool to a report. */

void message_check(struct qmgr *, struct message *);
/* Something about it has ended: if that was the last, end the round. May free the message. */

bool message_owes(const struct message *); /* its sender is to be told of some recipient */

void message_end_round(struct qmgr *, struct message *);
/* Nothing is left to do in it. May free the message. In round.c. */

static inline bool message_waits_for_site(const struct message *m)
{
	return m->untried && !m->put_off;
}
/* All that is left of it is due when its site lives again. */

/* A recipient is put off since its domain is suspended. resumes: so many were resumed before. */
static inline void message_hold_domain(struct message *m, uint32_t resumes)
{
	if (!m->domain_held)
		m->resumes = resumes;
	m->domain_held = m->put_off = true;
}

void message_leave_site(struct message *, bool in_queue);
/* The message goes back to the queue, and waits there for the site, or is gone. */

void message_drop_waiting(struct message *);
/* Forget its entries that wait; those in flight come back by themselves. */

void message_free(struct qmgr *, struct message *);

#endif
