/* SPDX-License-Identifier: ISC */
#include "base/conf_lines.h"
#include "sim/scenario_rows.h"

#define FAULT(place, ...)                                                                          \
	conf_fault(faults, s->file, conf_lines_find(lines, (place), -1, 1), __VA_ARGS__)

static int64_t least_nodes(const struct scenario *s)
{
	int64_t least = s->simulation.nodes;
	for (int i = 0; i < s->nrow; i++)
		if (s->row[i].nodes > 0 && (least == 0 || s->row[i].nodes < least))
			least = s->row[i].nodes;
	return least;
}

static void check_arrivals(const struct scenario *s, const struct conf_lines *lines,
			   struct conf_faults *faults)
{
	for (const struct scenario_arrival *a = s->arrival; a < s->arrival + s->narrival; a++)
		if (a->node > least_nodes(s))
			FAULT(&a->node, "there is no node %d", (int)a->node);
}

/* Heartbeats never end, and agents know nothing of leases. */
void scenario_check_nodes(const struct scenario *s, const struct conf_lines *lines,
			  struct conf_faults *faults)
{
	int64_t most = s->simulation.nodes;
	for (int i = 0; i < s->nrow; i++)
		most = s->row[i].nodes > most ? s->row[i].nodes : most;
	if (most > 0 && s->simulation.duration == 0)
		FAULT(&s->simulation.duration, "nodes need a duration");
	if (most > 0 && s->simulation.binding != BINDING_LATE)
		FAULT(&s->simulation.binding, "nodes bind late");
	check_arrivals(s, lines, faults);
}
