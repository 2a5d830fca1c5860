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

#include "base/mem.h"

#include <assert.h>
#include <ev.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who names types of notes. A row here gives an enumeration numbers that no other has. */
#define NOTE_FAMILIES(N)                                                                           \
	N(SPOOL)                                                                                   \
	N(SPOOL_ITSELF)                                                                            \
	N(RESOLVE)                                                                                 \
	N(STS_ASK)                                                                                 \
	N(TLS_RESULT)                                                                              \
	N(DELIVERY)                                                                                \
	N(DNS)                                                                                     \
	N(SECRETS)                                                                                 \
	N(QMGR_ITSELF)                                                                             \
	N(QMGR)                                                                                    \
	N(DEST)                                                                                    \
	N(VERIFICATION)                                                                            \
	N(EVENT_LINE)                                                                              \
	N(EVENTS)                                                                                  \
	N(STS)                                                                                     \
	N(TLSRPT)                                                                                  \
	N(SMTPC_WORKER)                                                                            \
	N(SMTPD_WORKER)                                                                            \
	N(LIMITER)                                                                                 \
	N(HTTP)                                                                                    \
	N(MAILDROP)                                                                                \
	N(PASSAGE)                                                                                 \
	N(SHARING)                                                                                 \
	N(FACT)                                                                                    \
	N(CLUSTER)                                                                                 \
	N(CLUSTER_ITSELF)                                                                          \
	N(REPLICATE)                                                                               \
	N(NATS_LINK)                                                                               \
	N(REPLICA)                                                                                 \
	N(NODE)                                                                                    \
	N(FLOW)                                                                                    \
	N(SUPPRESS)                                                                                \
	N(SOCKETMAP)

enum note_family {
#define N(family) NOTES_OF_##family,
	NOTE_FAMILIES(N)
#undef N
};
#define NOTES_FROM(family) (1 + ((int)(family) << 8)) /* the family's first type */

struct note {
	struct note *next;
	int type; /* what the note is the first member of: one of some family's enumeration */
};

/* An object of this size, of zeros but for the note of this type that is its first member; free() frees it. */
static inline void *mailbox_note(size_t size, int type)
{
	assert(size >= sizeof(struct note) && type > 0);
	struct note *note = mem_zalloc(size);
	note->type = type;
	return note;
}

/* Notes that have come since the owner's loop woke. */
struct mailbox_turn {
	int notes;
	int longest;	    /* the type of the note that took longest, while turns are traced */
	int64_t longest_us; /* 0: not looked at */
};

struct mailbox {
	_Atomic(struct note *) top; /* a stack of what was posted, newest first */
	atomic_int awaited;	    /* while the owner rests: notes that are to come; else 0 */
	struct ev_loop *loop;
	ev_async wake;
	void (*receive)(void *owner, struct note *);
	void (*received_all)(void *owner); /* after a batch, may be NULL */
	void *owner;
	struct mailbox_turn turn;
	bool timed; /* each note is, for `turn` */
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
