/* SPDX-License-Identifier: ISC */
#include "sim/sim.h"

#include "base/mem.h"
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>

static void run_once(struct sim *sim, const struct arrivals *arrivals,
		     const struct scenario_row *row, bool early)
{
	struct world world;
	sim->run = mem_realloc(sim->run, (size_t)(sim->n + 1) * sizeof *sim->run);
	struct sim_run *run = &sim->run[sim->n++];
	*run = (struct sim_run){row, early, tally_new()};
	world_init(&world, sim->scenario, arrivals, sim->seed, early, run->tally);
	world_run(&world);
	world_fini(&world);
}

static void run_row(struct sim *sim, const struct arrivals *arrivals,
		    const struct scenario_row *row)
{
	int binding = sim->scenario->simulation.binding;
	if (binding != BINDING_LATE)
		run_once(sim, arrivals, row, true);
	if (binding != BINDING_EARLY)
		run_once(sim, arrivals, row, false);
}

static void run_all(struct sim *sim, struct scenario *s, const struct arrivals *arrivals,
		    const char *only_row)
{
	if (s->nrow == 0)
		run_row(sim, arrivals, NULL);
	for (int i = 0; i < s->nrow; i++) {
		if (only_row && strcmp(s->row[i].title, only_row) != 0)
			continue;
		scenario_take_row(s, &s->row[i]);
		run_row(sim, arrivals, &s->row[i]);
	}
}

struct sim *sim_run(struct scenario *s, uint64_t seed, const char *only_row, struct buf *errors)
{
	struct arrivals arrivals;
	struct sim *sim = mem_zalloc(sizeof *sim);
	sim->scenario = s;
	sim->seed = seed;
	if (arrivals_make(&arrivals, s, seed, errors))
		run_all(sim, s, &arrivals, only_row);
	else
		sim_free(&sim);
	arrivals_fini(&arrivals);
	return sim;
}

void sim_free(struct sim **sp)
{
	struct sim *sim = mem_take(sp);
	if (!sim)
		return;
	for (int i = 0; i < sim->n; i++)
		tally_free(&sim->run[i].tally);
	free(sim->run);
	free(sim);
}

int64_t sim_faults(const struct sim *sim)
{
	int64_t n = 0;
	for (int i = 0; i < sim->n; i++)
		n += sim->run[i].tally->nfault;
	return n;
}
