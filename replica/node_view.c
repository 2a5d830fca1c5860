/* SPDX-License-Identifier: ISC */
#include "replica/node_view.h"

#include "base/clock.h"
#include "base/mem.h"
#include "replica/roster.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct node_epoch *)a)->name, ((const struct node_epoch *)b)->name);
}

static struct node_epoch describe_row(const struct roster_row *r)
{
	return (struct node_epoch){.name = mem_strdup(r->node),
				   .state = replica_state_name(r->is.state),
				   .epoch = r->is.epoch,
				   .since_ms = r->seen.since_ms,
				   .by = mem_strdup(r->is.by),
				   .number = r->is.number};
}

struct node_view *node_view_new(const struct roster *from)
{
	struct node_view *v = mem_zalloc(sizeof *v);
	if (!from)
		return v;
	v->there = true;
	v->node = mem_zalloc((size_t)from->n * sizeof *v->node + 1);
	for (int i = 0; i < from->n; i++)
		if (from->row[i].there)
			v->node[v->n++] = describe_row(&from->row[i]);
	qsort(v->node, (size_t)v->n, sizeof *v->node, by_name);
	return v;
}

void node_view_doubt(struct node_view *v, const char *node)
{
	for (int i = 0; i < v->n; i++)
		if (strcmp(v->node[i].name, node) == 0)
			v->node[i].state = "doubt";
}

void node_view_waits(struct node_view *v, const char *node)
{
	for (int i = 0; i < v->n; i++)
		if (strcmp(v->node[i].name, node) == 0)
			return;
	v->node = mem_realloc(v->node, (size_t)(v->n + 1) * sizeof *v->node);
	v->node[v->n++] = (struct node_epoch){.name = mem_strdup(node),
					      .state = "waiting",
					      .since_ms = clock_up_ms(),
					      .by = mem_strdup("-")};
	qsort(v->node, (size_t)v->n, sizeof *v->node, by_name);
}

void node_view_keep(struct node_view **kept, struct node_view *next)
{
	if (*kept && !next->there) {
		(*kept)->there = false;
		node_view_free(&next);
		return;
	}
	node_view_free(kept);
	*kept = next;
}

void node_view_free(struct node_view **vp)
{
	struct node_view *v = mem_take(vp);
	if (!v)
		return;
	for (int i = 0; i < v->n; i++) {
		free(v->node[i].name);
		free(v->node[i].by);
	}
	free(v->node);
	free(v);
}
