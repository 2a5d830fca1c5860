/* SPDX-License-Identifier: ISC */
#include "base/mailbox.h"

#include <stdbool.h>
#include <stddef.h>

/* Take everything, oldest first. */
static struct note *take(struct mailbox *m)
{
	struct note *note = atomic_exchange_explicit(&m->top, NULL, memory_order_acquire);
	struct note *first = NULL;
	while (note) {
		struct note *next = note->next;
		note->next = first;
		first = note;
		note = next;
	}
	return first;
}

bool mailbox_drain(struct mailbox *m)
{
	struct note *note = take(m);
	if (!note)
		return false;
	while (note) {
		struct note *next = note->next;
		note->next = NULL;
		m->receive(m->owner, note);
		note = next;
	}
	return true;
}

static void on_wake(struct ev_loop *loop, ev_async *w, int revents)
{
	(void)loop;
	(void)revents;
	struct mailbox *m = w->data;
	if (mailbox_drain(m) && m->received_all)
		m->received_all(m->owner);
}

void mailbox_init(struct mailbox *m, struct ev_loop *loop,
		  void (*receive)(void *owner, struct note *), void (*received_all)(void *owner),
		  void *owner)
{
	atomic_init(&m->top, NULL);
	m->loop = loop;
	m->receive = receive;
	m->received_all = received_all;
	m->owner = owner;
	ev_async_init(&m->wake, on_wake);
	m->wake.data = m;
	ev_async_start(loop, &m->wake);
}

void mailbox_fini(struct mailbox *m)
{
	while (mailbox_drain(m))
		;
	ev_async_stop(m->loop, &m->wake);
}

void mailbox_post(struct mailbox *m, struct note *note)
{
	struct note *top = atomic_load_explicit(&m->top, memory_order_relaxed);
	do
		note->next = top;
	while (!atomic_compare_exchange_weak_explicit(&m->top, &top, note, memory_order_release,
						      memory_order_relaxed));
	/* Whoever finds the stack empty wakes the owner; the others ride along. */
	if (!top)
		ev_async_send(m->loop, &m->wake);
}
