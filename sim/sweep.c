/* SPDX-License-Identifier: ISC */
#include "sim/sweep.h"

#include "base/log.h"
#include "base/mem.h"
#include "sim/oracle.h"
#include "sim/sim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

/* Differences that are none: chance falls otherwise in each run. */
static const double noise_part = 0.05, noise_ms = 5, far_part = 1.5;
enum { WORST = 10 };

/* Mail in doubt waits for its own retry, for which nobody but the host can do anything. */
static double mean_ms(const struct tally *t)
{
	return numbers_mean(&t->sure);
}

static void take_runs(struct sweep_case *c, const struct sim *sim)
{
	assert(sim->n == 2 && sim->run[0].early && !sim->run[1].early);
	c->early_ms = mean_ms(sim->run[0].tally);
	c->late_ms = mean_ms(sim->run[1].tally);
	c->early_deferred = tally_deferred_percent(sim->run[0].tally);
	c->late_deferred = tally_deferred_percent(sim->run[1].tally);
	c->faults = sim_faults(sim);
}

static struct sweep_case run_case(uint64_t seed)
{
	struct sweep_case c = {.seed = seed};
	struct buf text = {0}, what = {0}, errors = {0};
	struct arrivals arrivals;
	sweep_write(seed, &text, &what);
	struct scenario *s = scenario_parse(buf_cstr(&text), "sweep", &errors);
	assert(s && "what sweep_write() writes is right");
	struct sim *sim = sim_run(s, seed, NULL, &errors);
	take_runs(&c, sim);
	arrivals_make(&arrivals, s, seed, &errors);
	c.oracle_ms = oracle_mean_ms(s, &arrivals);
	c.what = buf_steal(&what, NULL);
	arrivals_fini(&arrivals);
	sim_free(&sim);
	scenario_free(&s);
	buf_fini(&text);
	buf_fini(&errors);
	return c;
}

void sweep_run(struct sweep *sweep, int n, uint64_t seed)
{
	*sweep = (struct sweep){.n = n, .of = mem_zalloc((size_t)n * sizeof *sweep->of)};
	for (int i = 0; i < n; i++)
		sweep->of[i] = run_case(seed + (uint64_t)i);
}

void sweep_fini(struct sweep *sweep)
{
	for (int i = 0; i < sweep->n; i++)
		free(sweep->of[i].what);
	free(sweep->of);
	*sweep = (struct sweep){0};
}

int64_t sweep_faults(const struct sweep *sweep)
{
	int64_t n = 0;
	for (int i = 0; i < sweep->n; i++)
		n += sweep->of[i].faults;
	return n;
}

bool sweep_worse(const struct sweep_case *c)
{
	return c->late_ms > c->early_ms * (1 + noise_part) + noise_ms;
}

bool sweep_far(const struct sweep_case *c)
{
	return c->late_ms > c->oracle_ms * far_part + noise_ms;
}

static double to_oracle(const struct sweep_case *c)
{
	return c->late_ms / (c->oracle_ms + noise_ms);
}

static double to_early(const struct sweep_case *c)
{
	return c->late_ms / (c->early_ms + noise_ms);
}

static int by_oracle(const void *a, const void *b)
{
	double x = to_oracle(a), y = to_oracle(b);
	return (x < y) - (x > y);
}

static int by_early(const void *a, const void *b)
{
	double x = to_early(a), y = to_early(b);
	return (x < y) - (x > y);
}

static void write_case(const struct sweep_case *c, struct buf *to)
{
	buf_printf(to, "%8" PRIu64 " %10.3f %10.3f %10.3f %8.2f %8.2f%s %s\n", c->seed,
		   c->late_ms / 1000, c->early_ms / 1000, c->oracle_ms / 1000, c->late_deferred,
		   c->early_deferred, c->faults ? " FAULTS" : " ", c->what);
}

/* A copy in another order. */
static void write_worst(const struct sweep *sweep, int (*order)(const void *, const void *),
			const char *title, struct buf *to)
{
	size_t size = (size_t)sweep->n * sizeof *sweep->of;
	struct sweep_case *of = mem_zalloc(size);
	for (int i = 0; i < sweep->n; i++)
		of[i] = sweep->of[i];
	qsort(of, (size_t)sweep->n, sizeof *of, order);
	buf_printf(to,
		   "\n%s\n    seed       mean    Postfix     oracle deferred  Postfix  "
		   "destination\n",
		   title);
	for (int i = 0; i < sweep->n && i < WORST; i++)
		write_case(&of[i], to);
	free(of);
}

void sweep_report(struct sweep *sweep, struct buf *to)
{
	int worse = 0, better = 0, near = 0;
	for (int i = 0; i < sweep->n; i++) {
		const struct sweep_case *c = &sweep->of[i];
		worse += sweep_worse(c);
		better += c->early_ms > c->late_ms * (1 + noise_part) + noise_ms;
		near += !sweep_far(c);
	}
	buf_printf(to,
		   "%d destinations: worse than Postfix in %d, better in %d; within %.1f times "
		   "the oracle in %.1f %%\n",
		   sweep->n, worse, better, far_part, sweep->n ? 100.0 * near / sweep->n : 0);
	if (sweep_faults(sweep) > 0)
		buf_printf(to, "FAULTS: %" PRId64 "\n", sweep_faults(sweep));
	write_worst(sweep, by_early, "seconds, worst beside Postfix", to);
	write_worst(sweep, by_oracle, "seconds, worst beside the oracle", to);
}

void sweep_json(const struct sweep *sweep, struct buf *to)
{
	for (int i = 0; i < sweep->n; i++) {
		const struct sweep_case *c = &sweep->of[i];
		buf_printf(to,
			   "{\"type\":\"sweep\",\"seed\":%" PRIu64
			   ",\"mean\":%.3f,\"postfix\":%.3f,\"oracle\":%.3f,"
			   "\"deferred_percent\":%.4f,\"postfix_deferred_percent\":%.4f,"
			   "\"worse\":%s,\"far\":%s,\"faults\":%" PRId64 ",\"destination\":",
			   c->seed, c->late_ms / 1000, c->early_ms / 1000, c->oracle_ms / 1000,
			   c->late_deferred, c->early_deferred, sweep_worse(c) ? "true" : "false",
			   sweep_far(c) ? "true" : "false", c->faults);
		log_json_string(to, c->what);
		buf_puts(to, "}\n");
	}
}
