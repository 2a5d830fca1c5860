/* SPDX-License-Identifier: ISC */
#include "sim/sim.h"

#include "sim/sim_nodes.h"
#include "sim/sim_periods.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static double in_seconds(int64_t ms)
{
	return (double)ms / 1000;
}

static void report_totals(const struct tally *t, struct buf *to)
{
	buf_printf(to, "%-14s %.3f s\n", "virtual time", in_seconds(t->ended_ms));
	buf_printf(to, "%-14s %" PRId64 ": %" PRId64 " done, %" PRId64 " in the queue\n",
		   "messages", t->messages, t->done, t->messages - t->done);
	buf_printf(to,
		   "%-14s %" PRId64 ": %" PRId64 " delivered, %" PRId64 " failed, %" PRId64
		   " in the queue\n",
		   "recipients", t->recipients, t->sent, t->failed,
		   t->recipients - t->sent - t->failed);
	buf_printf(to, "%-14s %" PRId64 ", reports to senders: %" PRId64 "\n", "transactions",
		   t->transactions, t->reports);
	if (t->paced > 0)
		buf_printf(to, "%-14s %" PRId64 " recipients, beyond what a host takes in a time\n",
			   "refused", t->paced);
	buf_printf(to, "%-14s %" PRId64 " messages and %" PRId64 " recipients at most\n",
		   "in memory", t->active_most, t->rcpt_most);
}

static void report_causes(const char *what, const int64_t *count, struct buf *to)
{
	const char *before = "";
	bool any = false;
	for (int i = 0; i < CAUSE_COUNT; i++) {
		if (count[i] == 0)
			continue;
		buf_printf(to, "%s%s%s %" PRId64, any ? "" : what, before,
			   cause_text((enum cause)i), count[i]);
		before = ", ";
		any = true;
	}
	buf_puts(to, any ? "\n" : "");
}

static void report_deferrals(const struct tally *t, struct buf *to)
{
	int64_t in_all = 0;
	for (int i = 0; i < CAUSE_COUNT; i++)
		in_all += t->deferrals[i];
	buf_printf(to,
		   "%-14s %" PRId64 " recipients (%.2f %%), %" PRId64 " times in all; %" PRId64
		   " times in doubt\n",
		   "deferred", t->deferred, tally_deferred_percent(t), in_all, t->in_doubt);
	report_causes("  because      ", t->deferrals, to);
	buf_printf(to, "%-14s %" PRId64 ", of which %" PRId64 " became ready\n", "connections",
		   t->connections, t->connected);
	report_causes("  others       ", t->useless, to);
}

static void report_class(const char *name, struct numbers *l, struct buf *to)
{
	if (l->n > 0)
		buf_printf(to, "  %-14s %9" PRId64 " %10.3f %10.3f %10.3f %10.3f\n", name, l->n,
			   numbers_mean(l) / 1000, in_seconds(numbers_quantile(l, 0.5)),
			   in_seconds(numbers_quantile(l, 0.95)),
			   in_seconds(numbers_quantile(l, 1)));
}

static void report_waits(struct tally *t, struct buf *to)
{
	if (t->sent == 0)
		return;
	buf_puts(to, "seconds until delivered, of recipients of\n"
		     "  messages to    delivered       mean     median       95 %    longest\n");
	for (int i = 0; i < TALLY_CLASSES; i++)
		report_class(tally_by_recipients[i], &t->by_recipients[i], to);
	buf_puts(to, "  messages of    delivered       mean     median       95 %    longest\n");
	for (int i = 0; i < TALLY_CLASSES; i++)
		report_class(tally_by_bytes[i], &t->by_bytes[i], to);
}

enum { SITES_TOLD = 20 };

static void report_more(const struct tally *t, struct buf *to)
{
	if (HASH_COUNT(t->sites) > SITES_TOLD)
		buf_printf(to, "  and %u more\n", HASH_COUNT(t->sites) - SITES_TOLD);
}

static void report_bound(const struct tally_site *s, struct buf *to)
{
	const char *before = "";
	for (int i = 0; i < CONSTRAINT_COUNT; i++) {
		enum constraint c = (enum constraint)i;
		if (s->bound[i] == 0)
			continue;
		buf_printf(to, "%s%s %.0f %%", before, constraint_name(c),
			   100 * tally_bound_part(s, c));
		before = ", ";
	}
	buf_puts(to, *before ? "" : "-");
}

/* How long each site's mail had to wait, and for what. */
static void report_site_waits(const struct tally *t, struct buf *to)
{
	int n = 0;
	if (t->sites)
		buf_puts(to,
			 "seconds until delivered, recipients deferred, and what bound the "
			 "first entry of those that\nwaited, in parts of the time\n"
			 "  delivered       mean       95 %    longest  deferred  site: bound\n");
	for (struct tally_site *s = t->sites; s && n < SITES_TOLD; s = s->hh.next, n++) {
		buf_printf(to, "  %9" PRId64 " %10.3f %10.3f %10.3f %9" PRId64 "  %s: ", s->waits.n,
			   numbers_mean(&s->waits) / 1000,
			   in_seconds(numbers_quantile(&s->waits, 0.95)),
			   in_seconds(numbers_quantile(&s->waits, 1)), s->deferred, s->key);
		report_bound(s, to);
		buf_puts(to, "\n");
	}
	report_more(t, to);
}

static void report_flows(const struct tally *t, struct buf *to)
{
	int n = 0;
	if (t->flows)
		buf_puts(to, "seconds until delivered, by flow\n"
			     "  delivered       mean     median       95 %    longest  flow\n");
	for (struct tally_flow *f = t->flows; f && n < SITES_TOLD; f = f->hh.next, n++)
		buf_printf(to, "  %9" PRId64 " %10.3f %10.3f %10.3f %10.3f  %s\n", f->waits.n,
			   numbers_mean(&f->waits) / 1000,
			   in_seconds(numbers_quantile(&f->waits, 0.5)),
			   in_seconds(numbers_quantile(&f->waits, 0.95)),
			   in_seconds(numbers_quantile(&f->waits, 1)), f->name);
	if (HASH_COUNT(t->flows) > SITES_TOLD)
		buf_printf(to, "  and %u more\n", HASH_COUNT(t->flows) - SITES_TOLD);
}

static void report_sites(const struct tally *t, struct buf *to)
{
	int n = 0;
	if (t->sites)
		buf_puts(to, "windows at each feedback, busy connections while there was work, "
			     "entries that waited;\n"
			     "deliveries begun a second, and the shortest time between two\n"
			     "  mean  dev. least  most     busy  most  conns    queue    rate "
			     "    gap  site\n");
	for (const struct tally_site *s = t->sites; s && n < SITES_TOLD; s = s->hh.next, n++)
		buf_printf(to, "%6.2f %5.2f %5d %5d %8.2f %5d %6d %8" PRId64 " %7.3f %7.3f  %s\n",
			   tally_window_mean(s), tally_window_deviation(s), s->window_least,
			   s->window_most, tally_busy_mean(s), s->busy_most, s->connections_most,
			   s->waiting_most, tally_rate(s), in_seconds(s->gap_least_us) / 1000,
			   s->key);
	report_more(t, to);
}

static void report_faults(const struct tally *t, struct buf *to)
{
	if (t->nfault == 0)
		return;
	buf_printf(to, "FAULTS: %" PRId64 "\n", t->nfault);
	buf_append(to, buf_data(&t->faults), buf_len(&t->faults));
}

static void report_run(struct sim_run *run, struct buf *to)
{
	buf_printf(to, "\n%s%s%s binding\n", run->row ? run->row->title : "", run->row ? ", " : "",
		   run->early ? "early" : "late");
	report_totals(run->tally, to);
	report_deferrals(run->tally, to);
	report_waits(run->tally, to);
	report_flows(run->tally, to);
	report_sites(run->tally, to);
	report_site_waits(run->tally, to);
	report_faults(run->tally, to);
}

/* Ours, and in parentheses what was published. */
static void put_cell(struct buf *to, int digits, double ours, const char *published)
{
	char whole[64];
	if (*published)
		snprintf(whole, sizeof whole, "%.*f (%s)", digits, ours, published);
	else
		snprintf(whole, sizeof whole, "%.*f", digits, ours);
	buf_printf(to, " %15s", whole);
}

static void row_early(const struct scenario_row *row, const struct tally *t, struct buf *to)
{
	const struct tally_site *site = tally_largest(t);
	put_cell(to, 2, tally_deferred_percent(t), row->published_deferred);
	put_cell(to, 2, site ? tally_window_mean(site) : 0, row->published_concurrency);
	put_cell(to, 2, site ? tally_window_deviation(site) : 0, row->published_deviation);
	put_cell(to, 0, (double)t->deferrals[CAUSE_CONNECT_TIMEOUT],
		 row->published_connect_timeouts);
	put_cell(to, 0, (double)t->deferrals[CAUSE_GREETING_TIMEOUT],
		 row->published_greeting_timeouts);
}

static void row_late(const struct tally *t, struct buf *to)
{
	const struct tally_site *site = tally_largest(t);
	buf_printf(to, " | %8.2f %8.2f %6.2f %8.1f", tally_deferred_percent(t),
		   site ? tally_window_mean(site) : 0, site ? tally_busy_mean(site) : 0,
		   in_seconds(t->ended_ms));
}

/* All rows as one table, as in the document that they come from. */
static void report_rows(const struct sim *sim, struct buf *to)
{
	bool early = sim->scenario->simulation.binding != BINDING_LATE;
	bool late = sim->scenario->simulation.binding != BINDING_EARLY;
	buf_printf(to, "\n%-18s", "");
	if (early)
		buf_puts(to, " early binding, and in parentheses what was published              "
			     "                ");
	buf_puts(to, late ? " | late binding" : "");
	buf_printf(to, "\n%-18s", "row");
	if (early)
		buf_printf(to, " %15s %15s %15s %15s %15s", "deferred %", "window", "deviation",
			   "connect t.o.", "greeting t.o.");
	if (late)
		buf_printf(to, " | %8s %8s %6s %8s", "deferred", "window", "busy", "seconds");
	for (int i = 0; i < sim->n; i++) {
		const struct sim_run *run = &sim->run[i];
		if (i == 0 || run->row != run[-1].row)
			buf_printf(to, "\n%-18s", run->row->title);
		if (run->early)
			row_early(run->row, run->tally, to);
		else
			row_late(run->tally, to);
	}
	buf_puts(to, "\n");
}

void sim_report(struct sim *sim, struct buf *to)
{
	buf_printf(to, "scenario %s, seed %" PRIu64 "\n", sim->scenario->file, sim->seed);
	if (sim_has_nodes(sim))
		sim_nodes_report(sim, to);
	for (int i = 0; i < sim->n && sim->scenario->simulation.nperiod > 0; i++)
		sim_periods_report(sim, &sim->run[i], to);
	if (sim->n > 0 && sim->run[0].row) {
		if (!sim_has_nodes(sim) && sim->scenario->simulation.nperiod == 0)
			report_rows(sim, to);
		for (int i = 0; i < sim->n; i++)
			report_faults(sim->run[i].tally, to);
	}
	if (sim->n > 0 && (!sim->run[0].row || sim->run[0].row == sim->run[sim->n - 1].row))
		for (int i = 0; i < sim->n; i++)
			report_run(&sim->run[i], to);
}
