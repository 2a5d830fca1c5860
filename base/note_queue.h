/* note_queue.h - notes in a line, the oldest first.
 *
 * OWNERSHIP  Embedded; whoever has it owns the notes in it, and frees them before it goes.
 * THREAD     One.
 */
#ifndef BASE_NOTE_QUEUE_H
#define BASE_NOTE_QUEUE_H

#include "base/mailbox.h"

#include <assert.h>
#include <stddef.h>

struct note_queue {
	struct note *first, **end; /* end: where the next one goes */
};

static inline void note_queue_init(struct note_queue *q)
{
	q->first = NULL;
	q->end = &q->first;
}

static inline void note_queue_put(struct note_queue *q, struct note *n)
{
	assert(!*q->end);
	n->next = NULL;
	*q->end = n;
	q->end = &n->next;
}

/* Back to the head: it was taken too early. */
static inline void note_queue_return(struct note_queue *q, struct note *n)
{
	n->next = q->first;
	q->first = n;
	if (!n->next)
		q->end = &n->next;
}

/* The one that a link of the line leads to: &q->first, or the next of another. NULL: there is none. */
static inline struct note *note_queue_take_at(struct note_queue *q, struct note **link)
{
	struct note *n = *link;
	if (n && !(*link = n->next))
		q->end = link;
	return n;
}

/* The oldest; NULL: there is none. */
static inline struct note *note_queue_take(struct note_queue *q)
{
	return note_queue_take_at(q, &q->first);
}

#endif
