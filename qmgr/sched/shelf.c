/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/shelf.h"

#include "base/mem.h"
#include "qmgr/sched/backlog.h"

#include <assert.h>
#include <stdlib.h>

/* The jobs of one class of sizes with peers at one queue. */
struct shelf {
	struct backlog *backlog;
	struct shelf *next;
	int size;
	struct heap peers;  /* by rank */
	struct job *leader; /* of the first of them, while the backlog stands for its queue */
};

/* Those that lead shelves of one class, by the states of the queues that these stand for. */
struct shelf_size {
	int size;
	struct shelf_size *next;
	struct heap leaders[QUEUE_STATES]; /* struct job, by rank */
};

/* Of a class that no job fits, so many are looked at: each selection may look. */
enum { CANDIDATE_MS = 1000, SIZE_CLASSES = 200, LOOKED_AT_MAX = 64 };

/* 1 to 16 each by itself; above, eight classes to the octave. */
static int size_class(int64_t entries)
{
	if (entries <= 16)
		return (int)entries;
	int octave = 63 - __builtin_clzll((unsigned long long)entries);
	int class = 16 + (octave - 4) * 8 + (int)((entries >> (octave - 3)) & 7);
	return class < SIZE_CLASSES ? class : SIZE_CLASSES - 1;
}

static struct shelf_size **where_size_is(struct claim *c, int size)
{
	struct shelf_size **at = &c->sizes;
	while (*at && (*at)->size < size)
		at = &(*at)->next;
	return at;
}

static struct shelf_size *size_get(struct claim *c, int size)
{
	struct shelf_size **at = where_size_is(c, size);
	if (*at && (*at)->size == size)
		return *at;
	struct shelf_size *new = mem_zalloc(sizeof *new);
	new->size = size;
	new->next = *at;
	return *at = new;
}

static void free_size_if_unused(struct claim *c, int size)
{
	struct shelf_size **at = where_size_is(c, size), *s = *at;
	assert(s && s->size == size);
	for (int state = QUEUE_PLACED; state < QUEUE_STATES; state++)
		if (s->leaders[state].n > 0)
			return;
	for (int state = QUEUE_PLACED; state < QUEUE_STATES; state++)
		heap_fini(&s->leaders[state]);
	*at = s->next;
	free(s);
}

static struct shelf *shelf_get(struct backlog *b, int size)
{
	struct shelf *shelf = b->shelves;
	while (shelf && shelf->size != size)
		shelf = shelf->next;
	if (shelf)
		return shelf;
	shelf = mem_zalloc(sizeof *shelf);
	shelf->backlog = b;
	shelf->size = size;
	heap_init(&shelf->peers);
	shelf->next = b->shelves;
	b->shelves = shelf;
	return shelf;
}

static void shelf_free(struct shelf *shelf)
{
	struct shelf **at = &shelf->backlog->shelves;
	while (*at != shelf)
		at = &(*at)->next;
	*at = shelf->next;
	assert(!shelf->leader);
	heap_fini(&shelf->peers);
	free(shelf);
}

static struct heap_key rank_of(const struct job *job)
{
	return (struct heap_key){.first = job->work->rank};
}

static void count_shelf_led(const struct shelf *shelf, struct job *job)
{
	enum queue_state state = shelf->backlog->queue->state;
	assert(state != QUEUE_QUIET);
	if (job->leads[state]++ > 0)
		return;
	struct shelf_size *s = size_get(shelf->backlog->claim, shelf->size);
	heap_put(&s->leaders[state], &job->in_size[state], rank_of(job));
}

static void uncount_shelf_led(const struct shelf *shelf, struct job *job)
{
	enum queue_state state = shelf->backlog->queue->state;
	assert(job->leads[state] > 0);
	if (--job->leads[state] > 0)
		return;
	struct claim *c = shelf->backlog->claim;
	heap_remove(&size_get(c, shelf->size)->leaders[state], &job->in_size[state]);
	free_size_if_unused(c, shelf->size);
}

/* The new one first: where each is the only one of its class, that is not freed and made again. */
static void set_leader(struct shelf *shelf, struct job *job)
{
	struct job *former = shelf->leader;
	if (job == former)
		return;
	shelf->leader = job;
	if (job)
		count_shelf_led(shelf, job);
	if (former)
		uncount_shelf_led(shelf, former);
}

static struct job *first_on(const struct shelf *shelf)
{
	struct heap_item *first = heap_first(&shelf->peers);
	return first ? heap_entry(first, struct peer, in_shelf)->job : NULL;
}

/* Its first peer may be another now. */
static void first_changed(struct shelf *shelf)
{
	if (shelf->backlog->queue->stands == shelf->backlog)
		set_leader(shelf, first_on(shelf));
}

void shelf_add(struct peer *p)
{
	assert(!p->shelf);
	struct shelf *shelf = p->shelf = shelf_get(p->backlog, p->job->size);
	heap_put(&shelf->peers, &p->in_shelf, rank_of(p->job));
	first_changed(shelf);
	p->job->claim->shelved++;
}

void shelf_remove(struct peer *p)
{
	struct shelf *shelf = p->shelf;
	assert(shelf && shelf->size == p->job->size);
	p->shelf = NULL;
	heap_remove(&shelf->peers, &p->in_shelf);
	first_changed(shelf);
	p->job->claim->shelved++;
	if (shelf->peers.n == 0)
		shelf_free(shelf);
}

void shelf_offer(struct backlog *b)
{
	for (struct shelf *shelf = b->shelves; shelf; shelf = shelf->next)
		set_leader(shelf, first_on(shelf));
}

void shelf_withdraw(struct backlog *b)
{
	for (struct shelf *shelf = b->shelves; shelf; shelf = shelf->next)
		set_leader(shelf, NULL);
}

void shelf_resize(struct job *job)
{
	int64_t entries = job_entries(job);
	int size = size_class(entries > 0 ? entries : 1);
	if (size == job->size)
		return;
	list_each (link, tmp, &job->ready)
		shelf_remove(list_entry(link, struct peer, in_ready));
	job->size = size;
	list_each (link, tmp, &job->ready)
		shelf_add(list_entry(link, struct peer, in_ready));
}

static bool is_candidate(const struct job *job, const struct job *current, int64_t payable)
{
	int64_t needed = job_needed(job);
	if (job->work->envelope->priority != current->work->envelope->priority)
		return false; /* it stays behind, or is in front already */
	return job != current && stack_leaf(&job->stack) && needed > 0 && needed <= payable;
}

/* The oldest of one class. The first may be a parent in the stack, or begun and too large still;
 * then others are looked at. */
static struct job *oldest_of(const struct heap *leaders, enum queue_state state,
			     const struct job *current, int64_t payable)
{
	struct job *best = NULL;
	for (size_t i = 1; i <= leaders->n && i <= LOOKED_AT_MAX; i++) {
		struct job *job = heap_entry(leaders->slot[i].item, struct job, in_size[state]);
		if (!is_candidate(job, current, payable))
			continue;
		if (i == 1)
			return job;
		if (!best || job->work->order < best->work->order)
			best = job;
	}
	return best;
}

static struct job *find_candidate(const struct job *current, enum queue_state up_to, int64_t now_ms)
{
	struct job *best = NULL;
	double best_score = 0;
	int64_t left = current->read_entries - current->selected;
	int64_t payable = preempt_payable(&current->stack, left, current->transport->settings);
	for (struct shelf_size *s = payable > 0 ? current->claim->sizes : NULL; s; s = s->next)
		for (int state = QUEUE_PLACED; state <= (int)up_to; state++) {
			struct job *job = oldest_of(&s->leaders[state], state, current, payable);
			if (!job)
				continue;
			double score = preempt_score(now_ms - job->work->taken_steady_ms,
						     job_entries(job));
			if (score > best_score) {
				best_score = score;
				best = job;
			}
		}
	return best;
}

/* The search is done again only when what it looked at has changed. Time alone changes nothing
 * where there is no candidate. */
struct job *shelf_candidate(const struct job *current, enum queue_state up_to)
{
	struct candidate_cache *c = &current->claim->candidate_cache;
	uint64_t shelved = current->claim->shelved;
	int64_t now_ms = scheduler_now_ms(current->transport->scheduler);
	bool same = c->current == current && c->shelved == shelved && c->up_to == up_to;
	if (same && (!c->best || now_ms - c->looked_ms < CANDIDATE_MS))
		return c->best;
	*c = (struct candidate_cache){.current = current,
				      .best = find_candidate(current, up_to, now_ms),
				      .shelved = shelved,
				      .looked_ms = now_ms,
				      .up_to = up_to};
	return c->best;
}
