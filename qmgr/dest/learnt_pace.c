/* SPDX-License-Identifier: ISC */
#include "qmgr/dest/learnt_pace.h"

#include "base/about.h"
#include "base/number.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* How it grows. */
static const double quickly = 1.25;	  /* times, with each that is taken */
static const double a_little = 0.02;	  /* of it, in a second, beyond what was found to go, */
static const double more_a_second = 0.01; /* and so much more with each second of the era, */
static const double at_most = 0.25;
static const double a_message =
	0.002; /* of it, with a message, at most: so slow receivers are not refused every few, */
static const double more_a_message = 0.0001; /* and so much more with each message of the era, */
static const double more_with_time =
	4e-6; /* and with each second of it: of one in minutes a day would not see enough messages */
static const double guessing =
	1.0; /* of it, in a second, after a burst, which tells little; half as much after each refusal, */
static const double guessing_most = 0.25; /* and with a message, at most */
static const double from_nothing =
	2; /* times, with each that is taken, while it is not known what goes */
static const double restart = 1.0; /* a second, when it is taken again after all was refused */
static const double below = 0.95;  /* of what was measured */
static const double unused =
	4; /* times what was measured: a pace beyond was not what was refused */
static const double doubting =
	0.2; /* of it, with a message, where it is doubted, and so much more with each further */
static const double doubting_most = 1;
static const double from_doubt = 4; /* times the pace at which it was asked, likewise */
static const double fallen = 0.9;   /* of the mean of the cycle before */

enum {
	SLICE_MS = LEARNT_PACE_COUNTED_MS / LEARNT_PACE_SLICES,
	GRAIN_US = 50000,
	TELLING = 10,
	HARDLY_ANY = 3, /* messages */
	STEADY = 4,	/* messages of an era, after which a pace that is doubted grows quickly */
	FALLS = 3,
};

static void learnt_pace_move(struct learnt_pace *p, enum learnt_pace_state to)
{
	assert(to != LEARNT_PACE_FREE || p->state != LEARNT_PACE_ASKING || p->refused_ms == 0);
	p->state = to;
}

static double smaller_of(double a, double b)
{
	return a < b ? a : b;
}

static double larger_of(double a, double b)
{
	return a > b ? a : b;
}

static int64_t spaced_us(double rate)
{
	assert(rate > 0);
	return (int64_t)(1e6 / rate);
}

/* --- the last seconds */

static void turn_slices(struct learnt_pace *p, int64_t now_ms)
{
	int64_t n = p->slice_ms == 0 ? LEARNT_PACE_SLICES : (now_ms - p->slice_ms) / SLICE_MS;
	if (n <= 0)
		return;
	int keep = n < LEARNT_PACE_SLICES ? LEARNT_PACE_SLICES - (int)n : 0;
	memmove(&p->slice[LEARNT_PACE_SLICES - keep], &p->slice[0],
		(size_t)keep * sizeof p->slice[0]);
	memset(&p->slice[0], 0, (size_t)(LEARNT_PACE_SLICES - keep) * sizeof p->slice[0]);
	p->slice_ms = keep > 0 ? p->slice_ms + n * SLICE_MS : now_ms;
}

/* How much was taken, and in how long: since the first of the slices that has any. */
static int64_t count_taken(struct learnt_pace *p, int64_t now_ms, int64_t *in_ms)
{
	int64_t n = 0;
	int used = 0;
	turn_slices(p, now_ms);
	for (int i = 0; i < LEARNT_PACE_SLICES; i++) {
		n += p->slice[i];
		if (p->slice[i] > 0)
			used = i + 1;
	}
	int64_t ms = used > 0 ? now_ms - p->slice_ms + (used - 1) * (int64_t)SLICE_MS : 0;
	*in_ms = ms > LEARNT_PACE_LEAST_MS ? ms : LEARNT_PACE_LEAST_MS;
	return n;
}

/* --- cuts */

static void begin_era(struct learnt_pace *p, int64_t now_ms, int64_t wait_us)
{
	assert(wait_us >= 0);
	p->era++;
	p->era_ms = now_ms;
	p->era_taken = 0;
	p->waits = p->first = true;
	p->due_us = now_ms * 1000 + wait_us;
}

static void ask_next(struct learnt_pace *p, int64_t now_ms, int64_t wait_ms, int64_t most_ms)
{
	p->ask_ms = wait_ms < most_ms ? wait_ms : most_ms;
	assert(p->ask_ms > 0);
	p->in_vain = false;
	learnt_pace_move(p, LEARNT_PACE_ASKING);
	begin_era(p, now_ms, 1000 * number_min(about_ms(p->ask_ms, now_ms), most_ms));
}

/* To so many a second; where that is too few to be called a pace, it is asked so often. */
static void cut_pace(struct learnt_pace *p, double rate, int64_t now_ms, int64_t most_ms)
{
	if (rate < LEARNT_PACE_LEAST) {
		ask_next(p, now_ms,
			 rate * (double)most_ms > 1000 ? spaced_us(rate) / 1000 : most_ms, most_ms);
		return;
	}
	p->rate = rate;
	learnt_pace_move(p, LEARNT_PACE_PACED);
	begin_era(p, now_ms, spaced_us(rate));
}

static void refused_first(struct learnt_pace *p, int64_t now_ms, int64_t most_ms)
{
	int64_t in_ms, n = count_taken(p, now_ms, &in_ms);
	p->cycle_ms = now_ms - in_ms;
	p->cycle_taken = n;
	p->known = 1000.0 * (double)n / (double)in_ms;
	p->guess = 1;
	if (n == 0)
		ask_next(p, now_ms, LEARNT_PACE_ASK_MS, most_ms);
	else
		cut_pace(p, p->known, now_ms, most_ms);
}

/* Of this pace: in the last seconds where these have seen some, or since it began. That which was refused counts half: it is taken as
 * often as not a moment later. */
static double measure_rate(struct learnt_pace *p, int64_t now_ms)
{
	int64_t in_ms = now_ms - p->era_ms, n = p->era_taken;
	int64_t lately_ms, lately = count_taken(p, now_ms, &lately_ms);
	if (in_ms > LEARNT_PACE_COUNTED_MS && lately >= TELLING) {
		n = lately;
		in_ms = lately_ms;
	}
	return 1000.0 * ((double)n + 0.5) / (double)(in_ms > 1 ? in_ms : 1);
}

static void refused_at_pace(struct learnt_pace *p, int64_t now_ms, int64_t most_ms)
{
	assert(p->rate > 0);
	if (p->era_taken > 0) {
		double measured = measure_rate(p, now_ms);
		double was = smaller_of(p->rate, unused * measured);
		p->early = p->rate < p->known || p->era_taken < HARDLY_ANY;
		p->known = below * sqrt(smaller_of(measured, was) * was);
		p->guess /= 2;
		cut_pace(p, p->known, now_ms, most_ms);
	} else if (!p->in_vain) {
		p->doubted |= p->early;
		cut_pace(p, p->rate / 2, now_ms, most_ms);
		p->in_vain = p->state == LEARNT_PACE_PACED;
	} else {
		ask_next(p, now_ms, number_max(LEARNT_PACE_ASK_MS, 2 * spaced_us(p->rate) / 1000),
			 most_ms);
	}
}

bool learnt_pace_refused(struct learnt_pace *p, unsigned era, int64_t now_ms, int64_t most_ms)
{
	p->refused_ms = now_ms;
	if (p->state != LEARNT_PACE_FREE && era != p->era)
		return false;
	if (p->state == LEARNT_PACE_FREE)
		refused_first(p, now_ms, most_ms);
	else if (p->state == LEARNT_PACE_PACED)
		refused_at_pace(p, now_ms, most_ms);
	else
		ask_next(p, now_ms, 2 * p->ask_ms, most_ms);
	return true;
}

/* --- growth */

static double part_of_doubted(const struct learnt_pace *p)
{
	if (!p->doubted || p->era_taken <= STEADY)
		return 0;
	return smaller_of(doubting * (double)(p->era_taken - STEADY), doubting_most);
}

static void grow_pace(struct learnt_pace *p, int64_t now_ms)
{
	assert(p->state == LEARNT_PACE_PACED && p->rate > 0);
	double seconds = (double)(now_ms - p->era_ms) / 1000;
	double part = a_little + more_a_second * seconds;
	double most =
		(a_message + more_a_message * (double)p->era_taken + more_with_time * seconds) *
		p->rate;
	part = part < at_most ? part : at_most; /* each is rate-th of a second */
	if (p->known <= 0)
		p->rate *= from_nothing;
	else if (p->rate * quickly <= p->known)
		p->rate *= quickly;
	else if (p->rate < p->known)
		p->rate = p->known;
	else
		p->rate +=
			larger_of(larger_of(part_of_doubted(p) * p->rate, smaller_of(part, most)),
				  p->guess * smaller_of(guessing, guessing_most * p->rate));
	p->rate = smaller_of(p->rate, LEARNT_PACE_MOST);
}

/* Buckets let as much through in each cycle as in the one before, however it was spread. Where there is ever less, as the pace is less, silences come for
 * reasons of their own. */
static void compare_cycles(struct learnt_pace *p, double mean)
{
	p->falls = mean < fallen * p->mean ? p->falls + 1 : 0;
	p->mean = mean;
	p->doubted |= p->falls >= FALLS;
}

/* Nothing is known. Where silences have nothing to do with the pace it is soon as it was. */
static void begin_from_nothing(struct learnt_pace *p)
{
	assert(p->ask_ms > 0);
	double asked = 1000 / (double)p->ask_ms;
	p->known = 0;
	p->guess = 1;
	if (!p->doubted)
		p->rate = from_nothing * asked;
	else
		p->rate = p->cycle_taken >= HARDLY_ANY ? restart : from_doubt * asked;
}

/* Mail is taken again: the mean of the whole cycle is what goes. If nothing else was taken in that, it was no bucket that was empty. */
static void end_cycle(struct learnt_pace *p, int64_t now_ms)
{
	assert(p->state == LEARNT_PACE_ASKING && p->cycle_taken > 0);
	int64_t in_ms = now_ms - p->cycle_ms;
	double mean = 1000.0 * (double)p->cycle_taken / (double)(in_ms > 1 ? in_ms : 1);
	if (p->cycle_taken > 1)
		compare_cycles(p, mean);
	if (p->cycle_taken > 1 && !p->doubted)
		p->rate = p->known = mean;
	else
		begin_from_nothing(p);
	p->rate = larger_of(LEARNT_PACE_LEAST, smaller_of(p->rate, restart));
	p->cycle_ms = now_ms;
	p->cycle_taken = 0;
	learnt_pace_move(p, LEARNT_PACE_PACED);
	begin_era(p, now_ms, spaced_us(p->rate));
	p->era_taken = 1;
}

bool learnt_pace_taken(struct learnt_pace *p, unsigned era, int64_t now_ms)
{
	turn_slices(p, now_ms);
	p->slice[0]++;
	if (p->state == LEARNT_PACE_FREE)
		return false;
	p->cycle_taken++;
	if (era != p->era)
		return false;
	if (p->state == LEARNT_PACE_ASKING) {
		p->in_vain = false;
		end_cycle(p, now_ms);
		return true;
	}
	if (p->era_taken == 0 && !p->in_vain && !p->early)
		p->doubted = false; /* a lesser pace is what it wanted */
	p->in_vain = false;
	p->era_taken++;
	grow_pace(p, now_ms);
	return false;
}

/* Delays of timers and threads are made up for; not what the first has waited for those that were under way. */
void learnt_pace_begun(struct learnt_pace *p, int64_t now_ms)
{
	turn_slices(p, now_ms);
	if (p->state != LEARNT_PACE_PACED)
		return;
	int64_t spaced = spaced_us(p->rate), now_us = now_ms * 1000;
	int64_t late_us = p->first ? 0 : number_max(spaced, GRAIN_US);
	p->first = false;
	p->due_us = (p->due_us > now_us - late_us ? p->due_us : now_us) + spaced;
}

int64_t learnt_pace_ahead(const struct learnt_pace *p)
{
	int64_t n = 0;
	for (int i = 0; i < LEARNT_PACE_SLICES; i++)
		n += p->slice[i];
	return LEARNT_PACE_AHEAD + n / LEARNT_PACE_AHEAD_PART;
}

void learnt_pace_home(struct learnt_pace *p)
{
	p->waits = false;
}

bool learnt_pace_open(const struct learnt_pace *p, int64_t now_ms, int64_t under_way)
{
	if (p->state == LEARNT_PACE_FREE)
		return true;
	if (now_ms < learnt_pace_due_ms(p) || (p->waits && under_way > 0))
		return false;
	return p->state == LEARNT_PACE_PACED || under_way == 0;
}

int64_t learnt_pace_due_ms(const struct learnt_pace *p)
{
	return p->state == LEARNT_PACE_FREE ? 0 : (p->due_us + 999) / 1000;
}

double learnt_pace_rate(const struct learnt_pace *p)
{
	switch (p->state) {
	case LEARNT_PACE_FREE:
		return 0;
	case LEARNT_PACE_PACED:
		return p->rate;
	default:
		return 1000.0 / (double)p->ask_ms;
	}
}

bool learnt_pace_narrow(const struct learnt_pace *p, int64_t now_ms)
{
	return p->state != LEARNT_PACE_FREE && now_ms < p->refused_ms + LEARNT_PACE_NARROW_MS;
}

bool learnt_pace_stale(const struct learnt_pace *p, int64_t now_ms)
{
	return p->state == LEARNT_PACE_PACED && now_ms >= p->refused_ms + LEARNT_PACE_KEPT_MS;
}

void learnt_pace_forget(struct learnt_pace *p)
{
	unsigned era = p->era + 1;
	*p = (struct learnt_pace){.era = era};
}

void learnt_pace_recall(struct learnt_pace *p, double rate, int64_t now_ms, int64_t most_ms)
{
	assert(rate > 0);
	assert(p->state != LEARNT_PACE_ASKING);
	p->refused_ms = p->cycle_ms = now_ms;
	p->cycle_taken = 0;
	p->known = rate;
	cut_pace(p, rate, now_ms, most_ms);
}
