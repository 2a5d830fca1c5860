/* SPDX-License-Identifier: ISC */
#include "sim/sweep_buckets.h"

#include "base/log.h"
#include "base/mem.h"
#include "sim/arrivals.h"
#include "sim/bucket.h"
#include "sim/dice.h"
#include "sim/sim.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

enum {
	WORST = 20,
	BEYOND_LEAST = 200,
	BEYOND_MOST = 1500,
	LASTS_LEAST_S = 30,
	LASTS_MOST_S = 3 * 3600
};

static const struct unit {
	const char *name;
	double seconds, least, most;
} units[] = {{"s", 1, 1, 100}, {"m", 60, 10, 1000}, {"h", 3600, 60, 3600}};

/* Returns how many it has in store. */
static int64_t write_bucket(struct dice *d, const struct unit *u, int64_t events, struct buf *to,
			    struct buf *what)
{
	bool at_once = dice_happens(d, 0.25), has_room = dice_happens(d, 0.7);
	int64_t room = at_once || !has_room ? events : (int64_t)(dice_log_between(d, 1, 300) + 0.5);
	buf_printf(to, "\tbucket = \"%" PRId64 "/%s\"\n\tbucket_room = %" PRId64 "\n", events,
		   u->name, room);
	buf_printf(what, "%" PRId64 "/%s, room %" PRId64, events, u->name, room);
	if (at_once) {
		buf_puts(to, "\tbucket_filled = \"at_once\"\n");
		buf_puts(what, ", at once");
	}
	return room;
}

/* More than it has in store: all at once, or up to five times as fast as it goes. */
static void write_arrivals(struct dice *d, double a_second, int64_t room, struct buf *to,
			   struct buf *what)
{
	double beyond = a_second * dice_log_between(d, LASTS_LEAST_S, LASTS_MOST_S);
	beyond = beyond < BEYOND_MOST ? beyond : BEYOND_MOST;
	beyond = beyond > BEYOND_LEAST ? beyond : BEYOND_LEAST;
	if (beyond < a_second * LASTS_LEAST_S)
		beyond = a_second * LASTS_LEAST_S;
	double messages = (double)room + beyond;
	buf_printf(to, "arrival \"a\" {\n\tdomains = {\"dest.test\"}\n\tmessages = %.0f\n",
		   messages);
	if (dice_happens(d, 0.4)) {
		buf_printf(to, "\tdistribution = \"bursts\"\n\tburst = %.0f\n}\n", messages);
		buf_printf(what, "; %.0f at once", messages);
		return;
	}
	double times = dice_log_between(d, 0.5, 5);
	int64_t an_hour = (int64_t)(times * a_second * 3600 + 0.5);
	buf_printf(to, "\tdistribution = \"poisson\"\n\trate = \"%" PRId64 "/h\"\n}\n",
		   an_hour > 0 ? an_hour : 1);
	buf_printf(what, "; %.0f, %.1f times as fast", messages, times);
}

void sweep_buckets_write(uint64_t seed, bool pace, struct buf *to, struct buf *what)
{
	struct dice d;
	dice_init(&d, seed, "buckets");
	const struct unit *u = &units[dice_between(&d, 0, 2)];
	int64_t events = (int64_t)(dice_log_between(&d, u->least, u->most) + 0.5);
	double trip_ms = dice_log_between(&d, 0.1, 100), work_ms = dice_log_between(&d, 1, 100);
	buf_printf(to,
		   "simulation {\n\tseed = %" PRIu64
		   "\n\tduration = 1d\n\tpatience = 1d\n\tdns_latency = 1ms\n}\n"
		   "transport \"smtp\" { pace = %s }\n"
		   "site \"dest\" {\n\tdomains = {\"dest.test\"}\n\tmx = {\"10 mx1.test\"}\n}\n"
		   "host \"mx1.test\" {\n\tconnect = %.0fms\n\tgreeting = %.0fms\n\tround_trip = "
		   "%.0fms\n"
		   "\ttransaction = %.0fms\n\tdepth = 17\n",
		   seed, pace ? "true" : "false", trip_ms, 2 * trip_ms + 1, 2 * trip_ms, work_ms);
	int64_t room = write_bucket(&d, u, events, to, what);
	buf_puts(to, "}\n");
	write_arrivals(&d, (double)events / u->seconds, room, to, what);
}

/* When the last is done by who knows the bucket. */
static double oracle_s(const struct scenario *s, const struct arrivals *a)
{
	const struct scenario_host *h = &s->host[0];
	struct bucket b;
	int64_t now_us = 0;
	bucket_init(&b, &h->bucket, h->bucket_room, h->bucket_filled == FILLED_AT_ONCE);
	for (int i = 0; i < a->n; i++) {
		if (a->item[i].at_us > now_us)
			now_us = a->item[i].at_us;
		while (!bucket_take(&b, now_us))
			now_us = bucket_next_us(&b, now_us);
	}
	int64_t work_ms = h->connect + h->greeting + h->round_trip + h->transaction;
	return (double)now_us / 1e6 + (double)work_ms / 1000;
}

static void count_run(struct sweep_bucket *c, const struct sim *sim)
{
	const struct tally *t = sim->run[0].tally;
	assert(sim->n == 1);
	c->messages = t->messages;
	c->refused = t->paced;
	c->faults = sim_faults(sim);
	for (int64_t i = 0; i < t->sent_at.n; i++) {
		double at_s = (double)t->sent_at.value[i] / 1000;
		c->in_time += at_s <= c->oracle_s;
		c->last_s = at_s > c->last_s ? at_s : c->last_s;
	}
}

static struct sweep_bucket run_bucket(uint64_t seed, bool pace)
{
	struct sweep_bucket c = {.seed = seed};
	struct buf text = {0}, what = {0}, errors = {0};
	struct arrivals arrivals;
	sweep_buckets_write(seed, pace, &text, &what);
	struct scenario *s = scenario_parse(buf_cstr(&text), "buckets", &errors);
	assert(s && "what sweep_buckets_write() writes is right");
	struct sim *sim = sim_run(s, seed, NULL, &errors);
	arrivals_make(&arrivals, s, seed, &errors);
	c.oracle_s = oracle_s(s, &arrivals);
	count_run(&c, sim);
	c.what = buf_steal(&what, NULL);
	arrivals_fini(&arrivals);
	sim_free(&sim);
	scenario_free(&s);
	buf_fini(&text);
	buf_fini(&errors);
	return c;
}

void sweep_buckets_run(struct sweep_buckets *b, int n, uint64_t seed, bool pace)
{
	*b = (struct sweep_buckets){.n = n, .of = mem_zalloc((size_t)n * sizeof *b->of)};
	for (int i = 0; i < n; i++)
		b->of[i] = run_bucket(seed + (uint64_t)i, pace);
}

void sweep_buckets_fini(struct sweep_buckets *b)
{
	for (int i = 0; i < b->n; i++)
		free(b->of[i].what);
	free(b->of);
	*b = (struct sweep_buckets){0};
}

int64_t sweep_buckets_faults(const struct sweep_buckets *b)
{
	int64_t n = 0;
	for (int i = 0; i < b->n; i++)
		n += b->of[i].faults;
	return n;
}

static double part_in_time(const struct sweep_bucket *c)
{
	return c->messages > 0 ? (double)c->in_time / (double)c->messages : 1;
}

bool sweep_bucket_slow(const struct sweep_bucket *c)
{
	return 10 * c->in_time < 9 * c->messages;
}

bool sweep_bucket_refused(const struct sweep_bucket *c)
{
	return 10 * c->refused >= c->messages;
}

static int by_part_in_time(const void *a, const void *b)
{
	double x = part_in_time(a), y = part_in_time(b);
	return (x > y) - (x < y);
}

void sweep_buckets_report(struct sweep_buckets *b, struct buf *to)
{
	int slow = 0, refused = 0;
	for (int i = 0; i < b->n; i++) {
		slow += sweep_bucket_slow(&b->of[i]);
		refused += sweep_bucket_refused(&b->of[i]);
	}
	buf_printf(to,
		   "%d hosts: nine tenths sent when the oracle had sent all in %.1f %%; less than "
		   "a tenth "
		   "refused in %.1f %%\n",
		   b->n, 100.0 - 100.0 * slow / b->n, 100.0 - 100.0 * refused / b->n);
	if (sweep_buckets_faults(b) > 0)
		buf_printf(to, "FAULTS: %" PRId64 "\n", sweep_buckets_faults(b));
	buf_puts(to, "\n    seed  in time  refused     last   oracle  host\n");
	qsort(b->of, (size_t)b->n, sizeof *b->of, by_part_in_time);
	for (int i = 0; i < b->n && i < WORST; i++) {
		const struct sweep_bucket *c = &b->of[i];
		buf_printf(to, "%8" PRIu64 " %8.1f%% %7.1f%% %8.1f %8.1f%s %s\n", c->seed,
			   100 * part_in_time(c), 100.0 * (double)c->refused / (double)c->messages,
			   c->last_s, c->oracle_s, c->faults ? " FAULTS" : " ", c->what);
	}
}

void sweep_buckets_json(const struct sweep_buckets *b, struct buf *to)
{
	for (int i = 0; i < b->n; i++) {
		const struct sweep_bucket *c = &b->of[i];
		buf_printf(to,
			   "{\"type\":\"bucket\",\"seed\":%" PRIu64 ",\"messages\":%" PRId64
			   ",\"in_time\":%" PRId64 ",\"refused\":%" PRId64
			   ",\"last\":%.3f,\"oracle\":%.3f,\"faults\":%" PRId64 ",\"host\":",
			   c->seed, c->messages, c->in_time, c->refused, c->last_s, c->oracle_s,
			   c->faults);
		log_json_string(to, c->what);
		buf_puts(to, "}\n");
	}
}
