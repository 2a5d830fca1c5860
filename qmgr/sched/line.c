/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/line.h"

#include <assert.h>

enum { NEWCOMERS_PART = 1024 }; /* of the gap */

static struct line_place *place_of(struct list *l)
{
	return list_entry(l, struct line_place, ring);
}

void line_init(struct line_place *p, bool home)
{
	list_init(&p->ring);
	p->at = home ? LINE_HOME : 0;
}

void line_leave(struct line_place *p)
{
	list_remove(&p->ring);
}

/* The ring has no head: its first is the one that has a greater one behind it. */
static uint64_t gap_before(const struct line_place *p)
{
	const struct line_place *before = place_of(p->ring.prev);
	return before->at < p->at ? p->at - before->at : p->at;
}

static struct line_place *first_of(struct line_place *p)
{
	while (place_of(p->ring.prev)->at < p->at)
		p = place_of(p->ring.prev);
	return p;
}

static uint64_t count_places(const struct line_place *p)
{
	uint64_t n = 1;
	for (const struct list *l = p->ring.next; l != &p->ring; l = l->next)
		n++;
	return n;
}

static void spread_places(struct line_place *any, void (*moved)(struct line_place *))
{
	struct line_place *p = first_of(any);
	uint64_t step = LINE_HOME / (count_places(any) + 1), at = 0;
	for (struct list *end = p->ring.prev;; p = place_of(p->ring.next)) {
		at += step;
		if (p->at != LINE_HOME) {
			p->at = at;
			moved(p);
		}
		if (&p->ring == end)
			return;
	}
}

void line_enter(struct line_place *before, struct line_place *newcomer,
		void (*moved)(struct line_place *))
{
	assert(list_empty(&newcomer->ring) && newcomer->at != LINE_HOME);
	if (gap_before(before) < 2 * NEWCOMERS_PART)
		spread_places(before, moved);
	uint64_t gap = gap_before(before);
	assert(gap >= 2 * NEWCOMERS_PART);
	newcomer->at = before->at - gap + gap / NEWCOMERS_PART;
	list_insert_before(&before->ring, &newcomer->ring);
}
