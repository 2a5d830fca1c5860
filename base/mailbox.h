/* mailbox.h - the only thing that crosses from one thread to another.
 *
 *	any thread -- mailbox_post(note) --> [ mailbox ] -- receive(owner, note) --> owner's loop
 *
 * A note is the first member of what is sent. Posting gives the object away: the sender must not
 * look at it again. Notes of one sender arrive in the order in which they were posted.
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

struct note {
	struct note *next;
	int type; /* the receiver's enumeration: what the note is the first member of */
};

struct mailbox {
	_Atomic(struct note *) top; /* a stack of what was posted, newest first */
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
/* Pass what has been posted so far to receive(), once the owner's thread has ended. False: nothing
 * was there. */

void mailbox_post(struct mailbox *, struct note *);

#endif
