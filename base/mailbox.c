/* SPDX-License-Identifier: ISC */
#include "base/mailbox.h"

#include "base/clock.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

/* Take everything, oldest first. */
static struct note *take_notes(struct mailbox *m)
{
	struct note *note = atomic_exchange_explicit(&m->top, NULL, memory_order_acq_rel);
	struct note *first = NULL;
	while (note) {
		struct note *next = note->next;
		note->next = first;
		first = note;
		note = next;
	}
	return first;
}

static void receive_timed(struct mailbox *m, struct note *note)
{
	int type = note->type;
	int64_t began_us = clock_steady_us();
	m->receive(m->owner, note);
	int64_t took_us = clock_steady_us() - began_us;
	if (took_us > m->turn.longest_us) {
		m->turn.longest_us = took_us;
		m->turn.longest = type;
	}
}

static void receive_note(struct mailbox *m, struct note *note)
{
	m->turn.notes++;
	if (m->timed)
		receive_timed(m, note);
	else
		m->receive(m->owner, note);
}

bool mailbox_drain(struct mailbox *m)
{
	atomic_store_explicit(&m->awaited, 0, memory_order_relaxed);
	struct note *note = take_notes(m);
	if (!note)
		return false;
	while (note) {
		struct note *next = note->next;
		note->next = NULL;
		assert(note->type > 0);
		receive_note(m, note);
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
	atomic_init(&m->awaited, 0);
	m->loop = loop;
	m->receive = receive;
	m->received_all = received_all;
	m->owner = owner;
	m->turn = (struct mailbox_turn){.notes = 0};
	m->timed = false;
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

/* True: nothing was there before. */
static bool push_note(struct mailbox *m, struct note *note)
{
	struct note *top = atomic_load_explicit(&m->top, memory_order_relaxed);
	do
		note->next = top;
	while (!atomic_compare_exchange_weak_explicit(&m->top, &top, note, memory_order_acq_rel,
						      memory_order_relaxed));
	return !top;
}

/* Whoever finds the stack empty wakes the owner; the others ride along. While the owner rests it may
 * have been filled by notes that woke nobody. */
void mailbox_post(struct mailbox *m, struct note *note)
{
	if (push_note(m, note) || atomic_load(&m->awaited) > 0)
		ev_async_send(m->loop, &m->wake);
}

/* `awaited`, read behind the push, is at least as new as the value that the owner has set before it took
 * what lay below: so a note that lies there unseen wakes it, or a timer will. */
void mailbox_post_awaited(struct mailbox *m, struct note *note)
{
	bool first = push_note(m, note);
	int awaited = atomic_load(&m->awaited);
	while (awaited > 0 && !atomic_compare_exchange_weak(&m->awaited, &awaited, awaited - 1))
		;
	if (awaited > 0 ? awaited == 1 : first)
		ev_async_send(m->loop, &m->wake);
}

void mailbox_post_idly(struct mailbox *m, struct note *note)
{
	if (push_note(m, note) && atomic_load(&m->awaited) == 0)
		ev_async_send(m->loop, &m->wake);
}

void mailbox_rest(struct mailbox *m, int awaited)
{
	assert(awaited > 0);
	atomic_store(&m->awaited, awaited);
}
