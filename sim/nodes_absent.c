/* SPDX-License-Identifier: ISC */
/* Stands in for several nodes, and their Redis, where sluice is built with CLUSTER=no. */
#include "base/conf_lines.h"
#include "sim/redis_server.h"
#include "sim/scenario_rows.h"

#include <stdlib.h>

static void refuse_nodes(const struct scenario *s, const void *place, int without,
			 const struct conf_lines *lines, struct conf_faults *faults)
{
	conf_fault(faults, s->file, conf_lines_find(lines, place, -1, without),
		   "nodes: this sluice was built without its cluster");
}

void scenario_check_nodes(const struct scenario *s, const struct conf_lines *lines,
			  struct conf_faults *faults)
{
	if (s->simulation.nodes > 0)
		refuse_nodes(s, &s->simulation.nodes, 1, lines, faults);
	for (int i = 0; i < s->nrow; i++)
		if (s->row[i].nodes > 0)
			refuse_nodes(s, &s->row[i].nodes, s->row[i].line, lines, faults);
	for (int i = 0; i < s->narrival; i++)
		if (s->arrival[i].node > 0)
			refuse_nodes(s, &s->arrival[i].node, s->arrival[i].line, lines, faults);
}

/* A scenario with nodes goes no further than its check. */
struct redis_server *redis_server_new(struct world *w)
{
	(void)w;
	abort();
}

struct wire_far redis_server_far(struct stage *st)
{
	(void)st;
	abort();
}

void redis_server_free(struct redis_server **r)
{
	(void)r;
}
