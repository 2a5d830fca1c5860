/* SPDX-License-Identifier: ISC */
#include "sim/sim_nodes.h"

#include "base/log.h"

#include <inttypes.h>

static double in_seconds(int64_t ms)
{
	return (double)ms / 1000;
}

static double in_percent(double part)
{
	return 100 * part;
}

static double wait_ms(const struct tally_nodes *t)
{
	return t->waits ? t->wait_us / (double)t->waits / 1000 : 0;
}

bool sim_has_nodes(const struct sim *sim)
{
	for (int i = 0; i < sim->n; i++)
		if (sim->run[i].tally->nodes.nodes > 0)
			return true;
	return false;
}

/* Of the hosts that were out, the least known: by which part of the nodes. */
static double least_known(const struct tally_nodes *t)
{
	double least = 1;
	for (int i = 0; i < t->nhost; i++) {
		double part = (double)t->host[i].knew / (double)t->nodes;
		if (t->host[i].back_ms > 0 && part < least)
			least = part;
	}
	return least;
}

/* And the longest time from when the first knew that it is back to when all did; -1: never. */
static double back_s(const struct tally_nodes *t)
{
	int64_t most_ms = 0;
	for (int i = 0; i < t->nhost; i++) {
		const struct tally_host *h = &t->host[i];
		if (h->knew > 0 && h->all_back_ms == 0)
			return -1;
		if (h->all_back_ms - h->first_back_ms > most_ms)
			most_ms = h->all_back_ms - h->first_back_ms;
	}
	return in_seconds(most_ms);
}

static int64_t tried_out(const struct tally_nodes *t)
{
	int64_t n = 0;
	for (int i = 0; i < t->nhost; i++)
		n += t->host[i].tried_out;
	return n;
}

static int64_t turned_away(const struct tally_nodes *t)
{
	int64_t n = 0;
	for (int i = 0; i < t->nhost; i++)
		n += t->host[i].turned_away;
	return n;
}

static void report_run(struct tally *t, struct buf *to)
{
	struct tally_nodes *n = &t->nodes;
	double ops = (double)tally_ops(n), messages = tally_messages(t), mean, worst;
	tally_rates(t, &mean, &worst);
	buf_printf(to, "%5d %6.0f %7.0f %7.1f %6.1f %8.2f %8.1f %6.1f %6.1f %6.1f %7.3f %7.3f",
		   n->nodes, messages / tally_seconds(t), ops / tally_seconds(t),
		   messages > 0 ? ops / messages : 0, in_percent(tally_busy(t)), wait_ms(n),
		   in_percent(tally_over(n)), in_percent(tally_used(n)), in_percent(mean),
		   in_percent(worst), in_seconds(numbers_quantile(&t->first, 0.5)),
		   in_seconds(numbers_quantile(&t->first, 0.95)));
	buf_printf(to, " %7.1f %7.3f %6" PRId64 "\n", in_percent(least_known(n)), back_s(n),
		   tried_out(n));
}

void sim_nodes_report(struct sim *sim, struct buf *to)
{
	buf_puts(to,
		 "\n                   Redis                          limits: most        rates: "
		 "error    first delivery        outage\n"
		 "nodes  msg/s   ops/s ops/msg busy %  wait ms   over % used % mean % worst "
		 "  median    95 % known %    back  tried\n");
	for (int i = 0; i < sim->n; i++)
		if (sim->run[i].tally->nodes.nodes > 0)
			report_run(sim->run[i].tally, to);
}

static void write_ops(const struct tally *t, struct buf *to)
{
	const char *before = "";
	buf_puts(to, ",\"redis\":{");
	for (int i = 0; i < REDIS_OP_COUNT; i++) {
		buf_printf(to, "%s\"%s\":{\"a_second\":%.2f,\"busy\":%.5f}", before,
			   redis_op_name((enum redis_op)i),
			   (double)t->nodes.ops[i] / tally_seconds(t),
			   t->nodes.busy_us[i] / 1e6 / tally_seconds(t));
		before = ",";
	}
	buf_puts(to, "}");
}

static void write_host(const struct tally_host *h, struct buf *to)
{
	buf_puts(to, "{\"host\":");
	log_json_string(to, h->name);
	buf_printf(to,
		   ",\"limit\":%" PRId64 ",\"most\":%d,\"mean\":%.3f,\"wanted_samples\":%" PRId64
		   ",\"turned_away\":%" PRId64,
		   h->limit, h->most, h->samples ? h->open / (double)h->samples : 0, h->samples,
		   h->turned_away);
	if (h->back_ms > 0)
		buf_printf(to,
			   ",\"out\":%.3f,\"first_knows\":%.3f,\"all_know\":%.3f,\"back\":%.3f,"
			   "\"first_back\":%.3f,\"all_back\":%.3f,\"knew\":%d,\"tried\":%" PRId64,
			   in_seconds(h->out_ms), in_seconds(h->first_out_ms),
			   in_seconds(h->all_out_ms), in_seconds(h->back_ms),
			   in_seconds(h->first_back_ms), in_seconds(h->all_back_ms), h->knew,
			   h->tried_out);
	buf_puts(to, "}");
}

/* Those with outages, and those that had more to do than their limit lets them. */
static void write_hosts(const struct tally_nodes *t, struct buf *to)
{
	const char *before = "";
	buf_puts(to, ",\"hosts\":[");
	for (int i = 0; i < t->nhost; i++) {
		const struct tally_host *h = &t->host[i];
		if (h->back_ms == 0 && h->samples == 0 && h->most <= h->limit)
			continue;
		buf_puts(to, before);
		write_host(h, to);
		before = ",";
	}
	buf_puts(to, "]");
}

void sim_nodes_json(struct sim_run *run, struct buf *to)
{
	struct tally *t = run->tally;
	const struct tally_nodes *n = &t->nodes;
	double mean, worst;
	if (n->nodes == 0)
		return;
	tally_rates(t, &mean, &worst);
	buf_printf(to,
		   ",\"nodes\":%d,\"messages_a_second\":%.3f,\"redis_operations\":%.2f,"
		   "\"redis_busy\":%.4f,\"redis_wait_ms\":%.3f,\"redis_wait_most_ms\":%.3f,"
		   "\"redis_given_up\":%" PRId64,
		   n->nodes, tally_messages(t) / tally_seconds(t),
		   (double)tally_ops(n) / tally_seconds(t), tally_busy(t), wait_ms(n),
		   (double)n->wait_most_us / 1000, n->given_up);
	buf_printf(to,
		   ",\"limit_over\":%.4f,\"limit_used\":%.4f,\"turned_away\":%" PRId64
		   ",\"rate_error_mean\":%.4f,\"rate_error_worst\":%.4f,\"first_median\":%.3f,"
		   "\"first_p95\":%.3f,\"first_own_median\":%.3f,\"first_own_p95\":%.3f",
		   tally_over(n), tally_used(n), turned_away(n), mean, worst,
		   in_seconds(numbers_quantile(&t->first, 0.5)),
		   in_seconds(numbers_quantile(&t->first, 0.95)),
		   in_seconds(numbers_quantile(&t->first_own, 0.5)),
		   in_seconds(numbers_quantile(&t->first_own, 0.95)));
	write_ops(t, to);
	write_hosts(n, to);
}
