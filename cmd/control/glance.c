/* SPDX-License-Identifier: ISC */
#include "cmd/control/glance.h"

#include "base/clock.h"

#include <assert.h>

enum { GLANCE_MS = 1000 };

void glance_init(struct glance *g, struct loop *loop, struct loop *qmgr)
{
	*g = (struct glance){.loop = loop, .qmgr = qmgr};
	list_init(&g->waiting);
}

void glance_fini(struct glance *g)
{
	snapshot_free(&g->last);
}

void glance_at(struct glance *g, struct glancer *who)
{
	if (g->last && clock_steady_ms() - g->taken_ms < GLANCE_MS) {
		list_init(&who->link);
		who->look(who, g->last);
		return;
	}
	list_append(&g->waiting, &who->link);
	if (g->asked)
		return;
	g->asked = true;
	loop_post(g->qmgr, &snapshot_new(g->loop)->note);
}

void glance_leave(struct glancer *who)
{
	list_remove(&who->link);
}

void glance_taken(struct glance *g, struct snapshot *s)
{
	struct list *first;
	snapshot_free(&g->last);
	g->last = s;
	g->taken_ms = clock_steady_ms();
	assert(g->asked);
	g->asked = false;
	while ((first = list_first(&g->waiting))) {
		struct glancer *who = list_entry(first, struct glancer, link);
		list_remove(first);
		who->look(who, s);
	}
}
