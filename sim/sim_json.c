/* SPDX-License-Identifier: ISC */
#include "sim/sim.h"

#include "base/log.h"
#include "sim/sim_nodes.h"
#include "sim/sim_periods.h"

#include <inttypes.h>
#include <stdlib.h>

static void begin_object(const struct sim_run *run, const char *type, struct buf *to)
{
	buf_printf(to, "{\"type\":\"%s\",\"binding\":\"%s\"", type, run->early ? "early" : "late");
	if (run->row) {
		buf_puts(to, ",\"row\":");
		log_json_string(to, run->row->title);
	}
}

static void site_name(const struct tally_site *s, struct buf *to)
{
	buf_puts(to, ",\"site\":");
	log_json_string(to, s->key);
}

static void write_sample(const struct sim_run *run, const struct tally_site *s,
			 const struct sample *sample, struct buf *to)
{
	begin_object(run, "sample", to);
	buf_printf(to, ",\"t\":%.3f", (double)sample->at_ms / 1000);
	site_name(s, to);
	buf_printf(to,
		   ",\"window\":%d,\"busy\":%d,\"connections\":%d,\"queue\":%" PRId64
		   ",\"bound\":\"%s\"}\n",
		   sample->window, sample->busy, sample->connections, sample->waiting,
		   constraint_name(sample->bound));
}

/* By time, and at one time in the order in which the sites came to be. */
static void write_series(const struct sim_run *run, struct buf *to)
{
	unsigned n = HASH_COUNT(run->tally->sites), i = 0;
	int64_t *next = calloc(n + 1, sizeof *next), at_ms = -1;
	while (at_ms != INT64_MAX) {
		int64_t soonest = INT64_MAX;
		i = 0;
		for (struct tally_site *s = run->tally->sites; s; s = s->hh.next, i++) {
			if (next[i] < s->nsample && s->sample[next[i]].at_ms == at_ms)
				write_sample(run, s, &s->sample[next[i]++], to);
			if (next[i] < s->nsample && s->sample[next[i]].at_ms < soonest)
				soonest = s->sample[next[i]].at_ms;
		}
		at_ms = soonest;
	}
	free(next);
}

static void write_causes(const char *key, const int64_t *count, struct buf *to)
{
	const char *before = "";
	buf_printf(to, ",\"%s\":{", key);
	for (int i = 0; i < CAUSE_COUNT; i++) {
		if (count[i] == 0)
			continue;
		buf_printf(to, "%s\"%s\":%" PRId64, before, cause_text((enum cause)i), count[i]);
		before = ",";
	}
	buf_puts(to, "}");
}

/* The share of time that each constraint held. */
static void write_bound(const struct tally_site *s, struct buf *to)
{
	const char *before = "";
	buf_puts(to, ",\"bound\":{");
	for (int i = 0; i < CONSTRAINT_COUNT; i++) {
		if (s->bound[i] == 0)
			continue;
		enum constraint c = (enum constraint)i;
		buf_printf(to, "%s\"%s\":%.4f", before, constraint_name(c), tally_bound_part(s, c));
		before = ",";
	}
	buf_puts(to, "}");
}

static void write_waits(struct numbers *l, struct buf *to)
{
	buf_printf(to,
		   ",\"delivered\":%" PRId64
		   ",\"wait_mean\":%.3f,\"wait_p95\":%.3f,\"wait_longest\":%.3f",
		   l->n, numbers_mean(l) / 1000, (double)numbers_quantile(l, 0.95) / 1000,
		   (double)numbers_quantile(l, 1) / 1000);
}

static void write_site(const struct sim_run *run, struct tally_site *s, struct buf *to)
{
	begin_object(run, "site", to);
	site_name(s, to);
	buf_printf(to,
		   ",\"window_mean\":%.4f,\"window_deviation\":%.4f,\"window_least\":%d,"
		   "\"window_most\":%d,\"feedbacks\":%" PRId64
		   ",\"busy_mean\":%.4f,\"busy_most\":%d,\"connections_most\":%d,"
		   "\"queue_most\":%" PRId64 ",\"begun\":%" PRId64
		   ",\"rate\":%.4f,\"gap_least\":%.3f",
		   tally_window_mean(s), tally_window_deviation(s), s->window_least, s->window_most,
		   s->feedbacks, tally_busy_mean(s), s->busy_most, s->connections_most,
		   s->waiting_most, s->begun, tally_rate(s), (double)s->gap_least_us / 1e6);
	write_waits(&s->waits, to);
	buf_printf(to, ",\"deferred\":%" PRId64, s->deferred);
	write_causes("deferrals", s->deferrals, to);
	write_bound(s, to);
	buf_puts(to, "}\n");
}

static void write_class(const struct sim_run *run, const char *key, const char *name,
			struct numbers *l, struct buf *to)
{
	if (l->n == 0)
		return;
	begin_object(run, "waiting", to);
	buf_printf(to,
		   ",\"%s\":\"%s\",\"delivered\":%" PRId64
		   ",\"mean\":%.3f,\"median\":%.3f,\"p95\":%.3f,\"longest\":%.3f}\n",
		   key, name, l->n, numbers_mean(l) / 1000, (double)numbers_quantile(l, 0.5) / 1000,
		   (double)numbers_quantile(l, 0.95) / 1000, (double)numbers_quantile(l, 1) / 1000);
}

static void write_summary(const struct sim *sim, struct sim_run *run, struct buf *to)
{
	const struct tally *t = run->tally;
	begin_object(run, "summary", to);
	buf_printf(to,
		   ",\"seed\":%" PRIu64 ",\"seconds\":%.3f,\"messages\":%" PRId64
		   ",\"done\":%" PRId64 ",\"recipients\":%" PRId64 ",\"delivered\":%" PRId64
		   ",\"failed\":%" PRId64 ",\"deferred\":%" PRId64
		   ",\"deferred_percent\":%.4f,\"in_doubt\":%" PRId64 ",\"refused\":%" PRId64
		   ",\"reports\":%" PRId64 ",\"transactions\":%" PRId64 ",\"connections\":%" PRId64
		   ",\"ready\":%" PRId64 ",\"messages_most\":%" PRId64
		   ",\"recipients_most\":%" PRId64,
		   sim->seed, (double)t->ended_ms / 1000, t->messages, t->done, t->recipients,
		   t->sent, t->failed, t->deferred, tally_deferred_percent(t), t->in_doubt,
		   t->paced, t->reports, t->transactions, t->connections, t->connected,
		   t->active_most, t->rcpt_most);
	write_causes("deferrals", t->deferrals, to);
	write_causes("useless_connections", t->useless, to);
	sim_nodes_json(run, to);
	buf_printf(to, ",\"faults\":%" PRId64 "}\n", t->nfault);
}

void sim_json(struct sim *sim, struct buf *to)
{
	for (int i = 0; i < sim->n; i++) {
		struct sim_run *run = &sim->run[i];
		struct tally *t = run->tally;
		write_series(run, to);
		for (struct tally_site *s = t->sites; s; s = s->hh.next)
			write_site(run, s, to);
		for (int c = 0; c < TALLY_CLASSES; c++)
			write_class(run, "recipients", tally_by_recipients[c], &t->by_recipients[c],
				    to);
		for (int c = 0; c < TALLY_CLASSES; c++)
			write_class(run, "bytes", tally_by_bytes[c], &t->by_bytes[c], to);
		for (struct tally_flow *f = t->flows; f; f = f->hh.next)
			write_class(run, "flow", f->name, &f->waits, to);
		sim_periods_json(sim, run, to);
		write_summary(sim, run, to);
	}
}
