/* SPDX-License-Identifier: ISC */
#include "base/conf_lines.h"
#include "sim/scenario_rows.h"

#define FAULT(place, ...)                                                                          \
	conf_fault(faults, s->file, conf_lines_find(lines, (place), -1, 1), __VA_ARGS__)

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
}
