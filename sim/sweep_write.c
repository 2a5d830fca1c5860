/* SPDX-License-Identifier: ISC */
/* One random destination: its arrivals, its hosts and their troubles. Sizes of all kinds are as
 * likely as each other, so that numbers are drawn by their logarithm. */
#include "sim/sweep.h"

#include "sim/dice.h"

#include <inttypes.h>

enum { MESSAGES_LEAST = 30, MESSAGES_MOST = 1000, LASTS_S = 600 };

static int64_t log_whole(struct dice *d, double low, double high)
{
	return (int64_t)(dice_log_between(d, low, high) + 0.5);
}

static void write_arrivals(struct dice *d, struct buf *to, struct buf *what)
{
	double a_minute = dice_log_between(d, 1, 60 * 300);
	double messages = a_minute * LASTS_S / 60;
	messages = messages < MESSAGES_LEAST ? MESSAGES_LEAST : messages;
	messages = messages > MESSAGES_MOST ? MESSAGES_MOST : messages;
	int64_t events = (int64_t)(a_minute + 0.5);
	buf_printf(to, "arrival \"a\" {\n\tdomains = {\"dest.test\"}\n\tmessages = %.0f\n",
		   messages);
	if (dice_happens(d, 0.25)) {
		int64_t burst = log_whole(d, 2, messages);
		int64_t interval_ms = burst * 60000 / (events > 0 ? events : 1);
		buf_printf(to,
			   "\tdistribution = \"bursts\"\n\tburst = %" PRId64
			   "\n\tinterval = %" PRId64 "ms\n}\n",
			   burst, interval_ms > 0 ? interval_ms : 1);
		buf_printf(what, "%" PRId64 " at once, ", burst);
	} else {
		buf_printf(to, "\tdistribution = \"%s\"\n\trate = \"%" PRId64 "/m\"\n}\n",
			   dice_happens(d, 0.7) ? "poisson" : "constant", events);
	}
	buf_printf(what, events < 120 ? "%.0f/m" : "%.0f/s",
		   events < 120 ? (double)events : (double)events / 60);
}

static void write_limit(struct dice *d, struct buf *to, struct buf *what)
{
	static const char *const beyond[] = {"421", "421", "421", "421", "drop", "mute"};
	if (dice_happens(d, 0.6))
		return;
	if (dice_happens(d, 0.25)) {
		int64_t first = log_whole(d, 1, 20), then = log_whole(d, 1, 20);
		int64_t at_s = dice_between(d, 5, LASTS_S / 2);
		buf_printf(to, "\tlimits = {\"0s %" PRId64 "\", \"%" PRId64 "s %" PRId64 "\"}\n",
			   first, at_s, then);
		buf_printf(what, ", limit %" PRId64 " then %" PRId64, first, then);
		return;
	}
	int64_t limit = log_whole(d, 1, 30);
	const char *kind = beyond[dice_between(d, 0, 5)];
	buf_printf(to, "\tconnection_limit = %" PRId64 "\n\tbeyond = \"%s\"\n", limit, kind);
	buf_printf(what, ", limit %" PRId64 " %s", limit, kind);
}

static void write_outage(struct dice *d, struct buf *to, struct buf *what)
{
	static const char *const kinds[] = {"refused", "refused", "421", "silent"};
	const char *kind = kinds[dice_between(d, 0, 3)];
	double at = dice_part(d);
	if (at < 0.6)
		return;
	if (at < 0.8) {
		int64_t every_s = log_whole(d, 10, 120);
		int64_t out_ms = log_whole(d, 200, 300.0 * (double)every_s);
		int64_t from_ms = dice_between(d, 0, every_s * 1000 - out_ms);
		buf_printf(to,
			   "\toutages = {\"%" PRId64 "ms..%" PRId64
			   "ms\"}\n\toutage_every = %" PRId64 "s\n",
			   from_ms, from_ms + out_ms, every_s);
		buf_printf(what, ", %s %.1f s of %" PRId64, kind, (double)out_ms / 1000, every_s);
	} else {
		int64_t from_s = dice_happens(d, 0.3) ? 0 : dice_between(d, 0, LASTS_S / 3);
		int64_t out_ms = log_whole(d, 300, 300000);
		buf_printf(to, "\toutages = {\"%" PRId64 "ms..%" PRId64 "ms\"}\n", from_s * 1000,
			   from_s * 1000 + out_ms);
		buf_printf(what, ", %s %.1f s at %" PRId64, kind, (double)out_ms / 1000, from_s);
	}
	buf_printf(to, "\toutage = \"%s\"\n", kind);
}

static void write_host(struct dice *d, const char *name, struct buf *to, struct buf *what)
{
	static const int depths[] = {1, 2, 17, 17};
	int depth = depths[dice_between(d, 0, 3)];
	double trip_ms = dice_log_between(d, 0.1, 300), work_ms = dice_log_between(d, 1, 5000);
	double greeting_ms = 2 * trip_ms + dice_log_between(d, 1, 300);
	buf_printf(to,
		   "host \"%s\" {\n\tconnect = %.0fms\n\tgreeting = %.0fms\n\tround_trip = %.0fms\n"
		   "\ttransaction = %.0fms\n\tdepth = %d\n",
		   name, trip_ms, greeting_ms, (depth > 1 ? 2 : 4) * trip_ms, work_ms, depth);
	buf_printf(what, "; r %.1f s %.0f ms depth %d", trip_ms, work_ms, depth);
	if (dice_happens(d, 0.3)) {
		double part = dice_log_between(d, 0.01, 0.3);
		buf_printf(to, "\trefused = \"%.3f\"\n", part);
		buf_printf(what, ", refuses %.0f %%", 100 * part);
	}
	write_limit(d, to, what);
	write_outage(d, to, what);
	buf_puts(to, "}\n");
}

void sweep_write(uint64_t seed, struct buf *to, struct buf *what)
{
	struct dice d;
	dice_init(&d, seed, "sweep");
	bool two = dice_happens(&d, 0.35), backup = dice_happens(&d, 0.5);
	buf_printf(to,
		   "simulation {\n\tseed = %" PRIu64
		   "\n\tbinding = \"both\"\n\tconnection_cache = true\n\tdns_latency = 1ms\n"
		   "\tduration = 6h\n\tpatience = 2h\n}\n",
		   seed);
	write_arrivals(&d, to, what);
	buf_puts(to, "site \"dest\" {\n\tdomains = {\"dest.test\"}\n\tmx += {\"10 mx1.test\"}\n");
	if (two)
		buf_printf(to, "\tmx += {\"%d mx2.test\"}\n", backup ? 20 : 10);
	buf_puts(to, "}\n");
	write_host(&d, "mx1.test", to, what);
	if (two) {
		buf_puts(what, backup ? " | backup" : " | beside");
		write_host(&d, "mx2.test", to, what);
	}
}
