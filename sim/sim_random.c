/* SPDX-License-Identifier: ISC */
/* Small scenarios from a seed: a few sites and hosts with troubles of all kinds, some tens of
 * messages, a short lifetime; everything must come to an end within the patience given.
 *
 * Those from RICH on have more: hosts of several sites, buckets, greylisting, a provider, sources, flows, delays. Their
 * chance is of its own, so that the others stay as they were. */
#include "sim/sim.h"

#include "sim/dice.h"

#include <inttypes.h>

enum { SITES_MOST = 4, HOSTS_MOST = 3, ARRIVALS_MOST = 3, MESSAGES_MOST = 30, RICH = 1000000 };

/* more: the chance of what the rich ones have; NULL: this is none. */
static bool more_happens(struct dice *more, double chance)
{
	return more && dice_happens(more, chance);
}

static int64_t up_to(struct dice *d, int64_t n)
{
	return dice_between(d, 1, n);
}

static const char *one_of(struct dice *d, const char *const *words, int n)
{
	return words[dice_between(d, 0, n - 1)];
}

static const char *random_feedback(struct dice *d)
{
	static const char *const words[] = {"1", "0.3", "1/concurrency", "1/sqrt(concurrency)",
					    "0"};
	return one_of(d, words, 5);
}

static void random_setting(struct dice *d, const char *name, int64_t low, int64_t high,
			   struct buf *to)
{
	if (dice_happens(d, 0.6))
		buf_printf(to, "\t%s = %" PRId64 "\n", name, dice_between(d, low, high));
}

/* Who slips past whom, how many recipients are in memory, and how fast they go. */
static void random_shares(struct dice *d, struct buf *to)
{
	random_setting(d, "delivery_slot_cost", 0, 6, to);
	random_setting(d, "delivery_slot_discount", 0, 100, to);
	random_setting(d, "delivery_slot_loan", 0, 6, to);
	random_setting(d, "minimum_delivery_slots", 0, 6, to);
	random_setting(d, "recipient_limit", 1, 60, to);
	random_setting(d, "extra_recipient_limit", 0, 30, to);
	random_setting(d, "refill_limit", 1, 20, to);
	if (dice_happens(d, 0.15))
		buf_printf(to, "\tdestination_rate = \"%" PRId64 "/s\"\n", dice_between(d, 2, 30));
	if (dice_happens(d, 0.1))
		buf_printf(to, "\tdestination_rate_delay = %" PRId64 "ms\n", up_to(d, 300));
}

static void random_queue(struct dice *d, struct buf *to)
{
	buf_printf(to,
		   "queue {\n\tmessage_active_limit = %" PRId64
		   "\n\tminimal_backoff_time = %" PRId64
		   "s\n\tmaximal_backoff_time = 2m\n\tmaximal_queue_lifetime = %" PRId64 "m\n",
		   up_to(d, 60), up_to(d, 30), up_to(d, 20));
	random_setting(d, "message_recipient_limit", 1, 100, to);
	random_setting(d, "message_recipient_minimum", 1, 10, to);
	random_setting(d, "router_concurrency_limit", 1, 10, to);
	random_setting(d, "max_message_concurrency", 1, 10, to);
	random_setting(d, "scale_max_concurrency", 0, 10, to);
	buf_puts(to, "}\n");
}

static void more_times(struct dice *more, const char *name, double chance, int64_t most_ms,
		       struct buf *to)
{
	if (more_happens(more, chance))
		buf_printf(to, "\t%s = %" PRId64 "ms\n", name, dice_between(more, 0, most_ms));
}

static void richer_transport(struct dice *more, struct buf *to)
{
	more_times(more, "connection_attempt_delay", 0.4, 2000, to);
	more_times(more, "backup_attempt_delay", 0.4, 10000, to);
	more_times(more, "site_patience", 0.4, 20000, to);
	more_times(more, "refill_delay", 0.3, 5000, to);
	if (more_happens(more, 0.3))
		buf_printf(to, "\thost_backoff_max = %" PRId64 "s\n", up_to(more, 60));
	if (more_happens(more, 0.2))
		buf_puts(to, "\tpace = false\n");
	if (more_happens(more, 0.3))
		buf_printf(to, "\tpace_retries = %" PRId64 "\n", dice_between(more, 0, 8));
	if (more_happens(more, 0.3))
		buf_printf(to, "\tconnection_max_age = %" PRId64 "s\n", up_to(more, 30));
	if (more_happens(more, 0.2))
		buf_puts(to, "\tsources = {\"a\", \"b\"}\n");
}

static void random_transport(struct dice *d, struct dice *more, const char *name, struct buf *to)
{
	static const char *const by[] = {"site", "domain", "recipient"};
	int64_t limit = dice_happens(d, 0.2) ? 0 : up_to(d, 12);
	buf_printf(to, "transport \"%s\" {\n", name);
	buf_printf(to, "\tdestination_concurrency_limit = %" PRId64 "\n", limit);
	buf_printf(to, "\tinitial_destination_concurrency = %" PRId64 "\n",
		   up_to(d, limit ? limit : 8));
	random_shares(d, to);
	buf_printf(to, "\tdestination_concurrency_positive_feedback = \"%s\"\n",
		   random_feedback(d));
	buf_printf(to, "\tdestination_concurrency_negative_feedback = \"%s\"\n",
		   random_feedback(d));
	buf_printf(to, "\tdestination_concurrency_failed_cohort_limit = %" PRId64 "\n",
		   dice_between(d, 0, 4));
	buf_printf(to, "\tdestination_recipient_limit = %" PRId64 "\n", dice_between(d, 0, 7));
	buf_printf(to, "\tdestination_by = \"%s\"\n", one_of(d, by, 3));
	buf_printf(to, "\tconnection_limit = %" PRId64 "\n",
		   dice_happens(d, 0.3) ? up_to(d, 4) : 100);
	buf_printf(to, "\thost_connection_limit = %" PRId64 "\n", dice_between(d, 0, 10));
	buf_printf(to, "\tpipeline_depth = %" PRId64 "\n", up_to(d, 8));
	buf_printf(to, "\tconnection_max_messages = %" PRId64 "\n", dice_between(d, 0, 9));
	buf_printf(to, "\tconnection_idle_timeout = %" PRId64 "ms\n", dice_between(d, 0, 6000));
	richer_transport(more, to);
	buf_printf(to, "\tconnect_timeout = 5s\n\tgreeting_timeout = %" PRId64 "s\n}\n",
		   dice_between(d, 5, 20));
}

static void random_part(struct dice *d, const char *name, double chance, struct buf *to)
{
	if (dice_happens(d, chance))
		buf_printf(to, "\t%s = \"%.3f\"\n", name, dice_part(d) * 0.3);
}

static void random_outages(struct dice *d, struct buf *to)
{
	int64_t from = dice_between(d, 0, 60), length = up_to(d, 240);
	if (!dice_happens(d, 0.3))
		return;
	buf_printf(to, "\toutages = {\"%" PRId64 "s..%" PRId64 "s\"}\n\toutage = \"%s\"\n", from,
		   from + length, dice_happens(d, 0.5) ? "refused" : "silent");
}

static void richer_host(struct dice *more, struct buf *to)
{
	static const char *const filled[] = {"evenly", "at_once"}, *const by[] = {"all", "source"};
	if (more_happens(more, 0.3)) {
		buf_printf(to, "\tbucket = \"%" PRId64 "/s\"\n", up_to(more, 10));
		buf_printf(to, "\tbucket_room = %" PRId64 "\n", up_to(more, 30));
		buf_printf(to, "\tbucket_filled = \"%s\"\n", one_of(more, filled, 2));
		buf_printf(to, "\tbucket_by = \"%s\"\n", one_of(more, by, 2));
	}
	if (more_happens(more, 0.15))
		buf_printf(to, "\tgreylisting = %" PRId64 "s\n", up_to(more, 40));
	if (more_happens(more, 0.2))
		buf_printf(to, "\tconnections = \"%" PRId64 "/s\"\n", up_to(more, 6));
}

static void random_host(struct dice *d, struct dice *more, int site, int host, struct buf *to)
{
	static const char *const beyond[] = {"421", "mute", "drop"};
	buf_printf(to, "host \"mx%d.s%d.test\" {\n", host, site);
	buf_printf(to, "\tconnect = %" PRId64 "ms\n", dice_between(d, 0, 300));
	buf_printf(to, "\tgreeting = %" PRId64 "ms\n", dice_between(d, 0, 300));
	buf_printf(to, "\tround_trip = %" PRId64 "ms\n", dice_between(d, 0, 300));
	buf_printf(to, "\ttransaction = %" PRId64 "ms\n", dice_between(d, 0, 800));
	buf_printf(to, "\tdepth = %" PRId64 "\n", up_to(d, 4));
	if (dice_happens(d, 0.4)) {
		buf_printf(to, "\tconnection_limit = %" PRId64 "\n", up_to(d, 6));
		buf_printf(to, "\tbacklog = %" PRId64 "\n", dice_between(d, 0, 3));
		buf_printf(to, "\tbeyond = \"%s\"\n", one_of(d, beyond, 3));
	}
	random_part(d, "refused", 0.2, to);
	random_part(d, "deferred", 0.3, to);
	random_part(d, "failed", 0.2, to);
	random_part(d, "broken", 0.2, to);
	random_outages(d, to);
	richer_host(more, to);
	buf_puts(to, "}\n");
}

static void random_site(struct dice *d, struct dice *more, int site, struct buf *to)
{
	int hosts = (int)up_to(d, HOSTS_MOST);
	bool fails = dice_happens(d, 0.1);
	for (int i = 1; i <= hosts && !fails; i++)
		random_host(d, more, site, i, to);
	buf_printf(to, "site \"s%d\" {\n\tdomains = {\"s%d.test\", \".s%d.test\"}\n", site, site,
		   site);
	if (fails)
		buf_printf(to, "\tfailure = \"%s\"\n", dice_happens(d, 0.5) ? "4.4.3" : "5.1.2");
	for (int i = 1; i <= hosts && !fails; i++)
		buf_printf(to, "\tmx += {\"%d mx%d.s%d.test\"}\n",
			   dice_happens(d, 0.5) ? 10 : 10 * i, i, site);
	if (!fails && more_happens(more, 0.4))
		buf_printf(to, "\tmx += {\"%" PRId64 " shared.test\"}\n",
			   10 * dice_between(more, 1, 3));
	buf_puts(to, "}\n");
}

static void random_times(struct dice *d, struct buf *to)
{
	switch (dice_between(d, 0, 3)) {
	case 0:
		buf_printf(to, "\trate = \"%" PRId64 "/s\"\n", up_to(d, 20));
		break;
	case 1:
		buf_printf(to, "\tdistribution = \"poisson\"\n\trate = \"%" PRId64 "/s\"\n",
			   up_to(d, 20));
		break;
	case 2:
		buf_printf(to, "\tdistribution = \"uniform\"\n\twithin = %" PRId64 "s\n",
			   up_to(d, 90));
		break;
	default:
		buf_printf(to,
			   "\tdistribution = \"bursts\"\n\tburst = %" PRId64
			   "\n\tinterval = %" PRId64 "s\n",
			   up_to(d, 10), up_to(d, 30));
	}
}

static void random_arrival(struct dice *d, struct dice *more, int number, int sites, struct buf *to)
{
	buf_printf(to, "arrival \"a%d\" {\n\tmessages = %" PRId64 "\n", number,
		   up_to(d, MESSAGES_MOST));
	buf_printf(to, "\tstart = %" PRId64 "s\n", dice_between(d, 0, 60));
	random_times(d, to);
	buf_printf(to, "\trecipients = {\"1:5\", \"1..%" PRId64 "\"}\n", up_to(d, 40));
	buf_puts(to, "\tsizes = {\"1k..64k:9\", \"1m..8m\"}\n");
	if (more_happens(more, 0.5))
		buf_puts(to, "\tflows = {\"f1..3\"}\n");
	for (int i = 1; i <= sites; i++)
		buf_printf(to, "\tdomains += {\"s%d.test:%" PRId64 "\", \"%s.s%d.test\"}\n", i,
			   up_to(d, 9), dice_happens(d, 0.3) ? "d#" : "d", i);
	buf_puts(to, "}\n");
}

static void richer_rest(struct dice *more, struct buf *to)
{
	buf_printf(to, "host \"shared.test\" {\n\ttransaction = %" PRId64 "ms\n",
		   dice_between(more, 0, 800));
	buf_printf(to, "\tconnection_limit = %" PRId64 "\n", dice_between(more, 0, 6));
	richer_host(more, to);
	buf_puts(to, "}\n");
	buf_puts(to, "source \"a\" { address = {\"192.0.2.10\"} }\n");
	buf_puts(to, "source \"b\" { address = {\"192.0.2.11\"} }\n");
	if (more_happens(more, 0.3)) {
		buf_puts(to, "provider \"p\" {\n\tmx = {\".s1.test\", \".s2.test\"}\n");
		if (more_happens(more, 0.5))
			buf_printf(to, "\tconnection_limit = %" PRId64 "\n", up_to(more, 6));
		if (more_happens(more, 0.5))
			buf_printf(to, "\trate = \"%" PRId64 "/s\"\n", up_to(more, 20));
		buf_puts(to, "}\n");
	}
	for (int i = 1; i <= 2; i++)
		if (more_happens(more, 0.5)) {
			buf_printf(to, "flow \"f%d\" {\n\tweight = %" PRId64 "\n", i,
				   up_to(more, 9));
			if (more_happens(more, 0.3))
				buf_printf(to, "\trate = \"%" PRId64 "/s\"\n", up_to(more, 10));
			buf_puts(to, "}\n");
		}
}

void sim_random(uint64_t seed, struct buf *to)
{
	struct dice d, rich;
	dice_init(&d, seed, "random");
	dice_init(&rich, seed, "more");
	struct dice *more = seed >= RICH ? &rich : NULL;
	int sites = (int)up_to(&d, SITES_MOST), arrivals = (int)up_to(&d, ARRIVALS_MOST);
	bool early = dice_happens(&d, 0.2);
	buf_printf(to,
		   "simulation {\n\tbinding = \"%s\"\n\tpatience = 1h\n\tdns_latency = %" PRId64
		   "ms\n",
		   early ? "early" : "late", dice_between(&d, 0, 2000));
	if (early)
		buf_printf(to, "\tconnection_cache = %s\n",
			   dice_happens(&d, 0.5) ? "true" : "false");
	buf_puts(to, "}\n");
	random_queue(&d, to);
	random_transport(&d, more, "smtp", to);
	random_transport(&d, more, "other", to);
	for (int i = 1; i <= sites; i++) {
		random_site(&d, more, i, to);
		if (dice_happens(&d, 0.3))
			buf_printf(to, "route \"s%d.test\" { transport = \"other\" }\n", i);
	}
	for (int i = 1; i <= arrivals; i++)
		random_arrival(&d, more, i, sites, to);
	if (more)
		richer_rest(more, to);
}
