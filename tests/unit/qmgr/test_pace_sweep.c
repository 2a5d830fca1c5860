/* SPDX-License-Identifier: ISC */
/* The pace beside an oracle that knows the receiver's bucket, over random loads from a seed.
 *
 *	SWEEP=2000 SEED=7 build/plain/tests/unit/qmgr/test_pace_sweep
 */
#include "tests/unit/qmgr/unit.h"

#include "qmgr/dest/learnt_pace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, STEP_MS = 5, FLIGHT_MAX = 200 };

static uint64_t dice;

static uint64_t chance(uint64_t below)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return dice % below;
}

/* From low to high, each order of magnitude as likely. */
static double spread(double low, double high)
{
	return low * pow(high / low, (double)chance(10000) / 10000);
}

/* So many in each `every`, or bit by bit up to `room`; between out and back it takes nothing. */
struct receiver {
	const char *kind;
	bool windows;
	double room, tokens, a_ms;
	int64_t every_ms, filled_ms, out_ms, back_ms;
	int64_t latency_ms;
	int side_by_side;
	double offered; /* messages a ms */
	int64_t lasts_ms;
};

struct result {
	double taken, refused;
};

static void fill(struct receiver *r, int64_t now_ms)
{
	if (r->windows && now_ms / r->every_ms > r->filled_ms / r->every_ms)
		r->tokens = r->room;
	else if (!r->windows)
		r->tokens += (double)(now_ms - r->filled_ms) * r->a_ms;
	r->tokens = r->tokens < r->room ? r->tokens : r->room;
	r->filled_ms = now_ms;
}

static bool takes(struct receiver *r, int64_t now_ms)
{
	fill(r, now_ms);
	if (r->tokens < 1 || (now_ms >= r->out_ms && now_ms < r->back_ms))
		return false;
	r->tokens -= 1;
	return true;
}

static struct receiver random_receiver(void)
{
	static const struct {
		const char *kind;
		int64_t every_ms;
		double least, most, hours;
	} kinds[] = {{"second", SECOND, 1, 100, 0.25},
		     {"minute", MINUTE, 20, 3000, 0.5},
		     {"hour", HOUR, 360, 20000, 12}};
	int k = (int)chance(3);
	struct receiver r = {.kind = kinds[k].kind, .every_ms = kinds[k].every_ms};
	double events = floor(spread(kinds[k].least, kinds[k].most));
	r.windows = k > 0 && chance(2);
	r.room = k == 0	     ? events * (double)(1 + chance(3))
		 : r.windows ? events
			     : events / (double)(1 + chance(10));
	r.room = r.room < 1 ? 1 : r.room;
	r.tokens = r.room;
	r.a_ms = events / (double)r.every_ms;
	r.filled_ms = r.every_ms;
	r.latency_ms = STEP_MS * (int64_t)(1 + chance(40));
	r.side_by_side = (int)(1 + chance(20));
	r.lasts_ms = (int64_t)(kinds[k].hours * HOUR);
	r.offered = r.a_ms * spread(0.5, 20);
	if (chance(5) == 0) {
		r.out_ms = r.every_ms + r.lasts_ms / 4;
		r.back_ms = r.out_ms + (int64_t)spread(2 * SECOND, 60 * SECOND);
	}
	return r;
}

struct flight {
	int64_t back_ms;
	unsigned era;
	bool taken;
};

static struct result pace_of(struct receiver r)
{
	struct learnt_pace p = {0};
	struct result n = {0};
	struct flight flight[FLIGHT_MAX];
	int under_way = 0;
	double waiting = 0;
	int64_t step_ms = r.every_ms == HOUR ? 4 * STEP_MS : STEP_MS;
	for (int64_t now_ms = r.every_ms; now_ms < r.every_ms + r.lasts_ms; now_ms += step_ms) {
		waiting += r.offered * (double)step_ms;
		for (int i = 0; i < under_way;) {
			if (flight[i].back_ms > now_ms) {
				i++;
				continue;
			}
			struct flight f = flight[i];
			flight[i] = flight[--under_way];
			if (under_way == 0)
				learnt_pace_home(&p);
			if (f.taken)
				learnt_pace_taken(&p, f.era, now_ms);
			else
				learnt_pace_refused(&p, f.era, now_ms, 4000 * SECOND);
			n.taken += f.taken;
			n.refused += !f.taken;
			waiting += !f.taken;
		}
		while (waiting >= 1 && under_way < r.side_by_side &&
		       learnt_pace_open(&p, now_ms, under_way)) {
			learnt_pace_begun(&p, now_ms);
			flight[under_way++] =
				(struct flight){now_ms + r.latency_ms, p.era, takes(&r, now_ms)};
			waiting -= 1;
		}
	}
	return n;
}

/* Who knows the bucket sends what is offered as soon as that has room. */
static double oracle_of(struct receiver r)
{
	double waiting = 0, taken = 0;
	int64_t begun = 0;
	int64_t step_ms = r.every_ms == HOUR ? 4 * STEP_MS : STEP_MS;
	double most = (double)step_ms * r.side_by_side / (double)r.latency_ms, room = most;
	for (int64_t now_ms = r.every_ms; now_ms < r.every_ms + r.lasts_ms - r.latency_ms;
	     now_ms += step_ms) {
		waiting += r.offered * (double)step_ms;
		room = room + most > most + 1 ? most + 1 : room + most;
		for (; waiting >= 1 && room >= 1 && takes(&r, now_ms);
		     begun++, waiting -= 1, room -= 1)
			taken += 1;
	}
	return taken;
}

static long number_of(const char *name, long without)
{
	const char *text = getenv(name);
	return text ? strtol(text, NULL, 10) : without;
}

static void nine_in_ten_get_nine_tenths_of_what_an_oracle_does_with_few_refusals(void **state)
{
	(void)state;
	long n = number_of("SWEEP", 300), short_of = 0, refused_often = 0;
	struct result all = {0};
	dice = (uint64_t)number_of("SEED", 1) * UINT64_C(0x9e3779b97f4a7c15);
	for (long i = 0; i < n; i++) {
		struct receiver r = random_receiver();
		double oracle = oracle_of(r);
		struct result is = pace_of(r);
		bool few =
			is.taken<0.9 * oracle, often = is.refused> 0.1 * is.taken + r.side_by_side;
		all.taken += is.taken;
		all.refused += is.refused;
		short_of += few;
		refused_often += often;
		if ((few || often) && getenv("SHOW"))
			print_message(
				"%ld %s%s: room %.0f, %.2f/s, offered %.2f/s, latency %d, abreast "
				"%d, out %.0f s: oracle %.0f, taken %.0f, refused %.0f\n",
				i, r.kind, r.windows ? " windows" : "", r.room, r.a_ms * 1000,
				r.offered * 1000, (int)r.latency_ms, r.side_by_side,
				(double)(r.back_ms - r.out_ms) / 1000, oracle, is.taken,
				is.refused);
	}
	print_message("%ld loads: %ld get less than 0.9 of the oracle's, %ld are refused more than "
		      "a tenth\n",
		      n, short_of, refused_often);
	assert_true(short_of <= n / 10);
	assert_true(refused_often <= n / 50);
	assert_true(all.refused < all.taken / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			nine_in_ten_get_nine_tenths_of_what_an_oracle_does_with_few_refusals),
	};
	return RUN(tests);
}
