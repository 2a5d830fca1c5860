/* SPDX-License-Identifier: ISC */
#include "smtpd/wait.h"

#include "base/mem.h"
#include "base/magic.h"
#include "smtpd/session.h"

#include <assert.h>
#include <stdlib.h>

enum { SLOTS_AT_FIRST = 16, SLOT_BITS = 32 };

static void grow_slots(struct waits *w)
{
	uint32_t n = w->n ? w->n * 2 : SLOTS_AT_FIRST;
	assert(n > w->n);
	w->slot = mem_realloc(w->slot, n * sizeof *w->slot);
	for (uint32_t i = w->n; i < n; i++)
		w->slot[i] = (struct wait_slot){.next_free = i + 1};
	w->first_free = w->n;
	w->n = n;
}

static uint64_t take_slot(struct waits *w, struct session *s)
{
	if (w->first_free == w->n)
		grow_slots(w);
	uint32_t i = w->first_free;
	struct wait_slot *slot = &w->slot[i];
	assert(!slot->session);
	w->first_free = slot->next_free;
	slot->session = s;
	slot->used++;
	return (uint64_t)slot->used << SLOT_BITS | i;
}

static struct wait_slot *find_slot(const struct waits *w, uint64_t cookie)
{
	uint32_t i = (uint32_t)cookie;
	if (i >= w->n || !w->slot[i].session || w->slot[i].used != cookie >> SLOT_BITS)
		return NULL;
	return &w->slot[i];
}

static void free_slot(struct waits *w, uint64_t cookie)
{
	struct wait_slot *slot = find_slot(w, cookie);
	assert(slot);
	slot->session = NULL;
	slot->next_free = w->first_free;
	w->first_free = (uint32_t)cookie;
}

/* Back to where it waited from. */
static const struct wait_kind *leave_wait(struct session *s)
{
	const struct wait_kind *kind = s->wait.kind;
	timer_stop(&s->worker->loop->timers, &s->wait.deadline);
	free_slot(&s->worker->waits, s->wait.cookie);
	session_move(s, s->wait.from);
	s->wait.kind = NULL;
	return kind;
}

static void expire_wait(void *owner)
{
	struct session *s = owner;
	magic_check(s, SESSION_MAGIC);
	leave_wait(s)->expired(s);
	s->wait.over(s);
}

void wait_init(struct session *s, void (*over)(struct session *))
{
	s->wait.over = over;
	timer_init(&s->wait.deadline, expire_wait, s);
}

uint64_t wait_begin(struct session *s, const struct wait_kind *kind, int64_t timeout_ms)
{
	struct wait *w = &s->wait;
	assert(loop_is_ours(s->worker->loop));
	assert(!w->kind && s->state != SESSION_WAIT);
	assert(kind->expired ? timeout_ms > 0 : timeout_ms == 0 && kind->answered);
	w->kind = kind;
	w->from = s->state;
	w->cookie = take_slot(&s->worker->waits, s);
	session_move(s, SESSION_WAIT);
	if (timeout_ms > 0)
		loop_timer_in(s->worker->loop, &w->deadline, timeout_ms);
	return w->cookie;
}

void wait_answer_post(struct wait_answer *a)
{
	a->note.type = SMTPD_WORKER_ANSWER;
	loop_post(a->reply_to, &a->note);
}

void wait_answered(struct smtpd_worker *w, uint64_t cookie, void *answer)
{
	assert(loop_is_ours(w->loop));
	struct wait_slot *slot = find_slot(&w->waits, cookie);
	if (!slot)
		return;
	struct session *s = slot->session;
	assert(s->wait.cookie == cookie && s->wait.kind->answered);
	leave_wait(s)->answered(s, answer);
	s->wait.over(s);
}

void wait_receive(struct smtpd_worker *w, struct wait_answer *a)
{
	wait_answered(w, a->cookie, a);
	if (a->free)
		a->free(a);
	else
		free(a);
}

void wait_cancel(struct session *s)
{
	if (!s->wait.kind)
		return;
	const struct wait_kind *kind = leave_wait(s);
	if (kind->ended)
		kind->ended(s);
}

bool wait_hurry(struct session *s)
{
	if (!s->wait.kind || !s->wait.kind->pause)
		return false;
	leave_wait(s)->expired(s);
	return true;
}

bool wait_outlives(const struct session *s)
{
	return s->wait.kind && s->wait.kind->outlives;
}

void waits_fini(struct waits *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		assert(!w->slot[i].session);
	free(w->slot);
	*w = (struct waits){0};
}
