/* mailbox.h - the only thing that crosses from one thread to another.
 *
 *	any thread -- mailbox_post(note) --> [ mailbox ] -- receive(owner, note) --> owner's loop
 *
 * A note is the first member of what is sent. Posting gives the object away: the sender must not
 * look at it again. Notes of one sender arrive in the order in which they were posted.
 *
 * An owner that will look at a given time, and wants nothing before, may rest until then: notes that
 * were posted to await something wake it only when so many of them have come. Each wake-up costs
 * whoever causes it as much as the work that most notes bring.
 *
 * OWNERSHIP  The receiver owns each note that it is given. Notes still in a mailbox when it is
 *            closed are passed to receive() by mailbox_fini().
 * THREAD     mailbox_post(): any. All else: the thread of the loop.
 * ERRORS     None.
 */
#ifndef BASE_MAILBOX_H
#define BASE_MAILBOX_H

#include <ev.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Who names types of notes. A row here gives an enumeration numbers that no other has. */
enum note_family {
	NOTES_OF_SPOOL,
	NOTES_OF_SPOOL_ITSELF,
	NOTES_OF_RESOLVE,
	NOTES_OF_STS_ASK,
	NOTES_OF_TLS_RESULT,
	NOTES_OF_DELIVERY,
	NOTES_OF_DNS,
	NOTES_OF_SECRETS,
	NOTES_OF_QMGR_ITSELF,
	NOTES_OF_QMGR,
	NOTES_OF_DEST,
	NOTES_OF_VERIFICATION,
	NOTES_OF_EVENT_LINE,
	NOTES_OF_EVENTS,
	NOTES_OF_STS,
	NOTES_OF_TLSRPT,
	NOTES_OF_SMTPD_WORKER,
	NOTES_OF_LIMITER,
	NOTES_OF_HTTP,
	NOTES_OF_MAILDROP,
	NOTES_OF_PASSAGE,
	NOTES_OF_SHARING,
	NOTES_OF_FACT,
	NOTES_OF_CLUSTER,
	NOTES_OF_CLUSTER_ITSELF,
	NOTES_OF_REPLICATE,
	NOTES_OF_NATS_LINK,
	NOTES_OF_REPLICA,
	NOTES_OF_NODE,
	NOTES_OF_FLOW,
	NOTES_OF_SUPPRESS,
	NOTES_OF_SOCKETMAP,
};
#define NOTES_FROM(family) (1 + ((int)(family) << 8)) /* the family's first type */

struct note {
	struct note *next;
	int type; /* what the note is the first member of: one of some family's enumeration */
};

struct mailbox {
	_Atomic(struct note *) top; /* a stack of what was posted, newest first */
	atomic_int awaited;	    /* while the owner rests: notes that are to come; else 0 */
	struct ev_loop *loop;
	ev_async wake;
	void (*receive)(void *owner, struct note *);
	void (*received_all)(void *owner); /* after a batch, may be NULL */
	void *owner;
};

void mailbox_init(struct mailbox *, struct ev_loop *, void (*receive)(void *owner, struct note *),
		  void (*received_all)(void *owner), void *owner);
void mailbox_fini(struct mailbox *);

bool mailbox_drain(struct mailbox *);
/* Pass what has been posted so far to receive(): once the owner's thread has ended, or in it, when its
 * rest is over. False: nothing was there. */

void mailbox_post(struct mailbox *, struct note *);
void mailbox_post_awaited(struct mailbox *, struct note *);
/* One of those that wake an owner who rests only together. */

void mailbox_post_idly(struct mailbox *, struct note *);
/* One that never wakes an owner who rests. */

void mailbox_rest(struct mailbox *, int awaited);
/* The owner: it has set a timer, and will call mailbox_drain() when that expires. Before, it wants to
 * be woken by other notes, or when `awaited` of the awaited ones have come (at least 1). It rests until
 * the next mailbox_drain(). */

#endif
