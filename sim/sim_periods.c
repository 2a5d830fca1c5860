/* SPDX-License-Identifier: ISC */
#include "sim/sim_periods.h"

#include "base/log.h"
#include "sim/flow_groups.h"

#include <inttypes.h>
#include <stdlib.h>

static double in_seconds(int64_t ms)
{
	return (double)ms / 1000;
}

static void report_group(const struct scenario_named *period, const char *group,
			 struct flow_period *p, struct buf *to)
{
	buf_printf(to, "  %-12s %-12s %9" PRId64 " %9" PRId64 " %10.3f %10.3f %10.3f %10.3f\n",
		   period->name, group, p->waits.n, p->queued,
		   in_seconds(numbers_quantile(&p->waits, 0.5)),
		   in_seconds(numbers_quantile(&p->waits, 0.95)),
		   in_seconds(numbers_quantile(&p->waits, 0.99)),
		   in_seconds(numbers_quantile(&p->waits, 1)));
}

void sim_periods_report(const struct sim *sim, const struct sim_run *run, struct buf *to)
{
	const struct scenario_simulation *s = &sim->scenario->simulation;
	struct flow_groups groups;
	flow_groups_find(&groups, run->tally);
	buf_printf(to,
		   "\n%s%sseconds until delivered, of recipients of what came in a period\n"
		   "  %-12s %-12s %9s %9s %10s %10s %10s %10s\n",
		   run->row ? run->row->title : "", run->row ? ": " : "", "period", "flows",
		   "delivered", "in queue", "median", "95 %", "99 %", "longest");
	for (int i = 0; i < s->nperiod; i++)
		for (int g = 0; g < groups.n; g++) {
			struct flow_period p;
			flow_groups_count(&groups, run->tally, g, &s->period[i].span, &p);
			if (p.waits.n + p.queued > 0)
				report_group(&s->period[i], groups.name[g], &p, to);
			free(p.waits.value);
		}
}

static void write_group(const struct sim_run *run, const struct scenario_named *period,
			const char *group, struct flow_period *p, struct buf *to)
{
	buf_puts(to, "{\"type\":\"period\"");
	if (run->row) {
		buf_puts(to, ",\"row\":");
		log_json_string(to, run->row->title);
	}
	buf_puts(to, ",\"period\":");
	log_json_string(to, period->name);
	buf_puts(to, ",\"flows\":");
	log_json_string(to, group);
	buf_printf(to,
		   ",\"delivered\":%" PRId64 ",\"queue\":%" PRId64
		   ",\"median\":%.3f,\"p95\":%.3f,\"p99\":%.3f,\"longest\":%.3f}\n",
		   p->waits.n, p->queued, in_seconds(numbers_quantile(&p->waits, 0.5)),
		   in_seconds(numbers_quantile(&p->waits, 0.95)),
		   in_seconds(numbers_quantile(&p->waits, 0.99)),
		   in_seconds(numbers_quantile(&p->waits, 1)));
}

void sim_periods_json(const struct sim *sim, const struct sim_run *run, struct buf *to)
{
	const struct scenario_simulation *s = &sim->scenario->simulation;
	struct flow_groups groups;
	flow_groups_find(&groups, run->tally);
	for (int i = 0; i < s->nperiod; i++)
		for (int g = 0; g < groups.n; g++) {
			struct flow_period p;
			flow_groups_count(&groups, run->tally, g, &s->period[i].span, &p);
			if (p.waits.n + p.queued > 0)
				write_group(run, &s->period[i], groups.name[g], &p, to);
			free(p.waits.value);
		}
}
