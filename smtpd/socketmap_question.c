/* SPDX-License-Identifier: ISC */
#include "smtpd/socketmap_question.h"

#include "base/mem.h"
#include "smtpd/smtpd_worker.h"

#include <assert.h>
#include <stdlib.h>

struct waiter {
	struct list link;
	uint64_t cookie; /* or the number of who asks, */
	bool of_asker;	 /* then */
	int64_t due_ms;	 /* steady clock */
};

static struct waiter *first_waiter(const struct socketmap_question *q)
{
	struct list *first = list_first(&q->waiters);
	return first ? list_entry(first, struct waiter, link) : NULL;
}

static void free_waiter(struct waiter *w)
{
	list_remove(&w->link);
	free(w);
}

static void free_answer(struct wait_answer *a)
{
	free(((struct socketmap_answer *)a)->text);
	free(a);
}

void socketmap_question_post(struct loop *loop, uint64_t cookie, bool of_asker,
			     enum socketmap_result result, const char *text)
{
	struct socketmap_answer *a = mem_zalloc(sizeof *a);
	a->answer = (struct wait_answer){.reply_to = loop, .cookie = cookie, .free = free_answer};
	a->result = result;
	a->text = mem_strdup(text);
	a->answer.note.type = of_asker ? SOCKETMAP_HEARD : (int)SMTPD_WORKER_ANSWER;
	loop_post(loop, &a->answer.note);
}

struct socketmap_question *socketmap_question_new(const char *name, const char *key, char *known)
{
	struct socketmap_question *q = mem_zalloc(sizeof *q);
	q->name = mem_strdup(name);
	q->key = mem_strdup(key);
	q->known = known;
	list_init(&q->waiters);
	return q;
}

void socketmap_question_free(struct socketmap_question **qp)
{
	struct socketmap_question *q = *qp;
	struct waiter *w;
	assert(!q->open && (!q->link.next || q->link.next == &q->link));
	while ((w = first_waiter(q)))
		free_waiter(w);
	free(q->name);
	free(q->key);
	free(q->known);
	free(q);
	*qp = NULL;
}

void socketmap_question_join(struct socketmap_question *q, uint64_t cookie, bool of_asker,
			     int64_t due_ms)
{
	struct waiter *w = mem_zalloc(sizeof *w);
	w->cookie = cookie;
	w->of_asker = of_asker;
	w->due_ms = due_ms;
	list_append(&q->waiters, &w->link);
}

bool socketmap_question_leave(struct socketmap_question *q, uint64_t cookie, bool of_asker)
{
	list_each_entry (struct waiter, w, link, &q->waiters)
		if (w->cookie == cookie && w->of_asker == of_asker)
			free_waiter(w);
	return !list_empty(&q->waiters);
}

int64_t socketmap_question_due_ms(const struct socketmap_question *q)
{
	assert(!list_empty(&q->waiters));
	return first_waiter(q)->due_ms;
}

static void answer_waiter(struct waiter *w, struct loop *loop, enum socketmap_result result,
			  const char *text)
{
	socketmap_question_post(loop, w->cookie, w->of_asker, result, text);
	free_waiter(w);
}

bool socketmap_question_refuse_late(struct socketmap_question *q, struct loop *loop,
				    int64_t soonest_ms, const char *why)
{
	struct waiter *w;
	while ((w = first_waiter(q)) && w->due_ms < soonest_ms)
		answer_waiter(w, loop, SOCKETMAP_FAILED, why);
	return w != NULL;
}

void socketmap_question_answer(struct socketmap_question *q, struct loop *loop,
			       enum socketmap_result result, const char *text)
{
	struct waiter *w;
	while ((w = first_waiter(q)))
		answer_waiter(w, loop, result, text);
}
