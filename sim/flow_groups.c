/* SPDX-License-Identifier: ISC */
#include "sim/flow_groups.h"

#include <stdio.h>
#include <string.h>

static int find_name(const struct flow_groups *g, const char *flow)
{
	size_t len = strcspn(flow, "-0123456789");
	for (int i = 0; i < g->n; i++)
		if (strlen(g->name[i]) == len && memcmp(g->name[i], flow, len) == 0)
			return i;
	return -1;
}

void flow_groups_find(struct flow_groups *g, const struct tally *t)
{
	*g = (struct flow_groups){0};
	for (const struct tally_flow *f = t->flows; f; f = f->hh.next) {
		if (find_name(g, f->name) >= 0)
			continue;
		if (g->n == FLOW_GROUPS_MAX) {
			snprintf(g->name[g->n], sizeof g->name[0], "others");
			g->n++;
			return;
		}
		snprintf(g->name[g->n++], sizeof g->name[0], "%.*s",
			 (int)strcspn(f->name, "-0123456789"), f->name);
	}
}

int flow_groups_of(const struct flow_groups *g, const struct tally_flow *f)
{
	int i = find_name(g, f->name);
	return i >= 0 ? i : g->n - 1;
}

void flow_groups_count(const struct flow_groups *g, const struct tally *t, int group,
		       const struct scenario_span *span, struct flow_period *to)
{
	*to = (struct flow_period){0};
	for (int64_t i = 0; i < t->nfate; i++) {
		const struct tally_fate *f = &t->fate[i];
		if (f->came_ms < span->from_ms || f->came_ms >= span->to_ms ||
		    flow_groups_of(g, f->flow) != group)
			continue;
		if (f->wait_ms >= 0)
			numbers_add(&to->waits, f->wait_ms);
		else
			to->queued++;
	}
}
