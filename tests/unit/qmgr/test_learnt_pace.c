/* SPDX-License-Identifier: ISC */
/* The pace that receivers let through, learnt from what they say; the receivers are buckets, and know the truth. */
#include "tests/unit/qmgr/unit.h"

#include "qmgr/dest/learnt_pace.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, MOST = 4000 * SECOND };

/* Takes so many at once, and so many more in a time; between `out` and `back` nothing. */
struct receiver {
	double room, tokens, a_second;
	bool windows; /* filled at once at the end of each `every`, not bit by bit */
	int64_t every_ms, filled_ms, out_ms, back_ms;
};

struct count {
	int64_t taken, refused, ended_ms;
};

static bool takes(struct receiver *r, int64_t now_ms)
{
	if (r->windows && now_ms / r->every_ms > r->filled_ms / r->every_ms)
		r->tokens = r->room;
	else if (!r->windows)
		r->tokens += (double)(now_ms - r->filled_ms) / 1000 * r->a_second;
	if (r->tokens > r->room)
		r->tokens = r->room;
	r->filled_ms = now_ms;
	if (r->tokens < 1 || (now_ms >= r->out_ms && now_ms < r->back_ms))
		return false;
	r->tokens -= 1;
	return true;
}

/* Up to `many` messages wait at all times, until so many were taken, or that time has come: each is answered at once, some
 * of them side by side. */
static struct count drive(struct learnt_pace *p, struct receiver *r, int64_t from_ms,
			  int64_t wanted, int64_t until_ms, int side_by_side)
{
	struct count n = {0};
	int64_t now_ms = from_ms;
	while (n.taken < wanted && now_ms < until_ms) {
		unsigned era = p->era;
		int given = 0;
		while (given < side_by_side && learnt_pace_open(p, now_ms, given)) {
			learnt_pace_begun(p, now_ms);
			given++;
		}
		for (int i = 0; i < given; i++) {
			bool taken = takes(r, now_ms);
			if (taken)
				learnt_pace_taken(p, era, now_ms);
			else
				learnt_pace_refused(p, era, now_ms, MOST);
			n.taken += taken;
			n.refused += !taken;
		}
		learnt_pace_home(p);
		n.ended_ms = now_ms;
		now_ms += 5;
	}
	return n;
}

static void nothing_is_held_back_where_nothing_is_refused(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	struct receiver r = {.room = 1e9, .tokens = 1e9, .filled_ms = SECOND};
	struct count n = drive(&p, &r, SECOND, 10000, HOUR, 20);
	assert_int_equal(n.refused, 0);
	assert_int_equal(p.state, LEARNT_PACE_FREE);
	assert_true(n.ended_ms < 4 * SECOND);
}

static void a_bucket_by_the_second_gets_what_it_takes(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	struct receiver r = {.room = 20, .tokens = 20, .a_second = 20, .filled_ms = SECOND};
	struct count n = drive(&p, &r, SECOND, 600, HOUR, 20);
	assert_true(n.refused < 60);
	assert_true(n.ended_ms - SECOND < 29 * SECOND * 135 / 100);
}

/* Whenever in its minute it is met first. */
static void a_bucket_by_the_minute_gets_nine_tenths(void **state)
{
	(void)state;
	enum { BEGINNINGS = 6 };
	int64_t taken = 0, refused = 0;
	for (int i = 0; i < BEGINNINGS; i++) {
		struct learnt_pace p = {0};
		int64_t from_ms = MINUTE + i * MINUTE / BEGINNINGS;
		struct receiver r = {.room = 100,
				     .windows = true,
				     .every_ms = MINUTE,
				     .tokens = 100,
				     .filled_ms = from_ms};
		struct count n = drive(&p, &r, from_ms, INT64_MAX, from_ms + 30 * MINUTE, 20);
		taken += n.taken;
		refused += n.refused;
	}
	assert_true(taken > BEGINNINGS * 2700);
	assert_true(refused < taken / 10);
}

static void a_bucket_by_the_hour_is_not_asked_all_the_time(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	struct receiver r = {
		.room = 360, .windows = true, .every_ms = HOUR, .tokens = 360, .filled_ms = HOUR};
	struct count n = drive(&p, &r, HOUR, INT64_MAX, 13 * HOUR, 20);
	assert_true(n.taken > 3888);
	assert_true(n.refused < n.taken / 10);
}

static void one_that_refuses_all_for_an_hour_is_asked_a_dozen_times(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	struct receiver r = {.room = 1e9,
			     .tokens = 1e9,
			     .filled_ms = SECOND,
			     .out_ms = SECOND,
			     .back_ms = SECOND + HOUR};
	struct count n = drive(&p, &r, SECOND, 3000, 3 * HOUR, 5);
	assert_true(n.taken >= 3000);
	assert_in_range(n.refused, 10, 5 + 13);
	assert_true(n.ended_ms < SECOND + 2 * HOUR);
}

/* After an outage in which nothing was taken nothing is known, and there may be no bucket. */
static void from_nothing_it_grows_quickly(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	struct receiver r = {.room = 1e9,
			     .tokens = 1e9,
			     .filled_ms = SECOND,
			     .out_ms = SECOND,
			     .back_ms = 6 * SECOND};
	struct count n = drive(&p, &r, SECOND, 60, HOUR, 5);
	assert_in_range(n.refused, 3, 7);
	assert_in_range(n.ended_ms, 8 * SECOND, SECOND + 20 * SECOND);
	r = (struct receiver){.room = 20,
			      .tokens = 20,
			      .a_second = 20,
			      .filled_ms = SECOND,
			      .out_ms = SECOND,
			      .back_ms = 6 * SECOND};
	p = (struct learnt_pace){0};
	n = drive(&p, &r, SECOND, 400, HOUR, 5);
	assert_true(n.refused < 40);
	assert_in_range(n.ended_ms, 26 * SECOND, SECOND + 26 * SECOND * 170 / 100);
}

/* Each message doubles it, however many come: what is refused thereafter is measured by what was taken. */
static void it_grows_no_further_than_any_host_takes(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	int64_t now_ms = SECOND;
	learnt_pace_refused(&p, p.era, now_ms, MOST);
	for (int i = 0; i < 2000; i++) {
		now_ms += i == 0 ? SECOND : 10;
		learnt_pace_begun(&p, now_ms);
		learnt_pace_taken(&p, p.era, now_ms);
	}
	assert_true(learnt_pace_rate(&p) <= LEARNT_PACE_MOST);
	learnt_pace_refused(&p, p.era, now_ms, MOST);
	assert_true(learnt_pace_rate(&p) > 80 && learnt_pace_rate(&p) < 250); /* of 100 */
}

static void slow_ones_are_refused_no_more_often_than_others(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	struct receiver r = {.room = 10, .tokens = 10, .a_second = 0.4, .filled_ms = SECOND};
	struct count n = drive(&p, &r, SECOND, INT64_MAX, SECOND + HOUR, 5);
	assert_true(n.taken > 0.9 * 0.4 * 3600);
	assert_true(n.refused < n.taken / 10);
}

/* Takes all but in the last `out` of each `every`, until it has got over that. */
struct trouble {
	int64_t every_ms, out_ms, over_ms;
	double a_second; /* comes, and waits */
};

/* How long after that as much is taken in a second as comes. */
static int64_t recover_from(const struct trouble *t)
{
	struct learnt_pace p = {0};
	double waiting = 0;
	int64_t taken = 0, before = 0, now_ms = 0;
	for (; now_ms < t->over_ms + HOUR; now_ms += 5) {
		bool out = now_ms < t->over_ms && now_ms % t->every_ms >= t->every_ms - t->out_ms;
		waiting += t->a_second * 0.005;
		unsigned era = p.era;
		int given = 0;
		for (; waiting >= 1 && given < 20 && learnt_pace_open(&p, SECOND + now_ms, given);
		     given++, waiting -= 1)
			learnt_pace_begun(&p, SECOND + now_ms);
		for (int i = 0; i < given; i++) {
			if (out)
				learnt_pace_refused(&p, era, SECOND + now_ms, MOST);
			else
				learnt_pace_taken(&p, era, SECOND + now_ms);
			taken += !out;
			waiting += out;
		}
		learnt_pace_home(&p);
		if (now_ms % SECOND > 0)
			continue;
		if (now_ms > t->over_ms + SECOND && (double)(taken - before) >= t->a_second)
			break;
		before = taken;
	}
	return now_ms - t->over_ms;
}

/* It refuses however slowly it is asked, so that each refusal would lessen a pace that has nothing to do with it. */
static void one_that_was_out_now_and_then_has_its_mail_soon(void **state)
{
	(void)state;
	static const struct trouble troubles[] = {
		{6 * SECOND, 3 * SECOND, 2 * MINUTE, 5},
		{6 * SECOND, 3 * SECOND, 2 * MINUTE, 50},
		{10 * SECOND, 5 * SECOND, 2 * MINUTE, 5},
		{10 * SECOND, 5 * SECOND, 2 * MINUTE, 50},
		{7 * SECOND, 4 * SECOND, 2 * MINUTE, 5},
		{7 * SECOND, 4 * SECOND, 2 * MINUTE, 50},
		{60 * SECOND, 20 * SECOND, 2 * MINUTE, 20},
		{20 * SECOND, 5 * SECOND, 5 * MINUTE, 20},
	};
	enum { TROUBLES = sizeof troubles / sizeof troubles[0] };
	int64_t all_ms = 0;
	for (int i = 0; i < TROUBLES; i++) {
		int64_t ms = recover_from(&troubles[i]);
		print_message("%d of %d s, %.0f/s: %.0f s\n", (int)troubles[i].out_ms / SECOND,
			      (int)troubles[i].every_ms / SECOND, troubles[i].a_second,
			      (double)ms / SECOND);
		assert_true(ms < 3 * MINUTE);
		all_ms += ms;
	}
	assert_true(all_ms < TROUBLES * MINUTE);
}

/* 1, 3, 7, 15, ... s after it went out, it would be out each time. */
static void one_that_is_out_at_even_intervals_is_met_between_them(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	int64_t now_ms = SECOND, began_ms = now_ms;
	learnt_pace_refused(&p, p.era, now_ms, MOST);
	while (p.state == LEARNT_PACE_ASKING && now_ms < began_ms + HOUR) {
		now_ms = learnt_pace_due_ms(&p);
		learnt_pace_begun(&p, now_ms);
		if ((now_ms - began_ms) % (7 * SECOND) < 4 * SECOND)
			learnt_pace_refused(&p, p.era, now_ms, MOST);
		else
			learnt_pace_taken(&p, p.era, now_ms);
	}
	assert_true(now_ms < began_ms + 5 * MINUTE);
}

/* As after a flood of others: it takes all again, and few messages say so. One that goes on so is not refused often. */
static void a_pace_of_minutes_grows_within_hours(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	struct receiver free = {.room = 1e9, .tokens = 1e9, .filled_ms = SECOND};
	learnt_pace_recall(&p, 0.005, SECOND, MOST);
	drive(&p, &free, SECOND, INT64_MAX, SECOND + 3 * HOUR, 1);
	assert_true(learnt_pace_rate(&p) > 0.02);
	struct receiver slow = {.room = 3, .tokens = 3, .a_second = 0.005, .filled_ms = SECOND};
	p = (struct learnt_pace){0};
	learnt_pace_recall(&p, 0.005, SECOND, MOST);
	struct count n = drive(&p, &slow, SECOND, INT64_MAX, SECOND + 12 * HOUR, 1);
	assert_true(n.taken > 0.9 * 0.005 * 12 * 3600);
	assert_true(n.refused < n.taken / 10);
}

static void what_was_under_way_when_it_was_cut_cuts_no_more(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	for (int i = 0; i < 40; i++)
		learnt_pace_taken(&p, p.era, SECOND + i * 50);
	unsigned before = p.era;
	assert_true(learnt_pace_refused(&p, before, 3 * SECOND, MOST));
	double rate = learnt_pace_rate(&p);
	assert_true(rate > 19 && rate < 21);
	assert_false(learnt_pace_refused(&p, before, 3 * SECOND, MOST));
	assert_true(learnt_pace_rate(&p) == rate);
	assert_false(learnt_pace_open(&p, 4 * SECOND, 3)); /* it has to come home first */
	assert_true(learnt_pace_open(&p, 4 * SECOND, 0));
}

static void asking_is_by_one_at_a_time_after_about_twice_the_time(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	int64_t now_ms = SECOND, wait_ms = SECOND;
	learnt_pace_refused(&p, p.era, now_ms, 10 * SECOND);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(p.state, LEARNT_PACE_ASKING);
		assert_in_range(learnt_pace_due_ms(&p), now_ms + wait_ms * 7 / 8,
				now_ms + wait_ms * 9 / 8);
		assert_true(learnt_pace_due_ms(&p) <= now_ms + 10 * SECOND);
		now_ms = learnt_pace_due_ms(&p);
		assert_false(learnt_pace_open(&p, now_ms - 1, 0));
		assert_true(learnt_pace_open(&p, now_ms, 0));
		learnt_pace_begun(&p, now_ms);
		assert_false(learnt_pace_open(&p, now_ms, 1));
		learnt_pace_refused(&p, p.era, now_ms, 10 * SECOND);
		wait_ms = wait_ms * 2 < 10 * SECOND ? wait_ms * 2 : 10 * SECOND;
	}
}

static void a_day_without_refusals_ends_it(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	for (int i = 0; i < 40; i++)
		learnt_pace_taken(&p, p.era, SECOND + i * 50);
	learnt_pace_refused(&p, p.era, 3 * SECOND, MOST);
	assert_true(learnt_pace_narrow(&p, 4 * SECOND));
	assert_false(learnt_pace_narrow(&p, HOUR));
	assert_false(learnt_pace_stale(&p, 24 * (int64_t)HOUR));
	assert_true(learnt_pace_stale(&p, 25 * (int64_t)HOUR));
	learnt_pace_forget(&p);
	assert_true(learnt_pace_open(&p, 25 * (int64_t)HOUR, 100));
}

static void pipelines_are_filled_as_far_as_mail_was_taken(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	assert_int_equal(learnt_pace_ahead(&p), LEARNT_PACE_AHEAD);
	for (int i = 0; i < 1000; i++)
		learnt_pace_taken(&p, p.era, SECOND + i);
	assert_int_equal(learnt_pace_ahead(&p), LEARNT_PACE_AHEAD + 1000 / LEARNT_PACE_AHEAD_PART);
	learnt_pace_begun(&p, HOUR);
	assert_int_equal(learnt_pace_ahead(&p), LEARNT_PACE_AHEAD);
}

static void what_was_recalled_is_as_it_was(void **state)
{
	(void)state;
	struct learnt_pace p = {0};
	learnt_pace_recall(&p, 20, SECOND, MOST);
	assert_int_equal(p.state, LEARNT_PACE_PACED);
	assert_true(learnt_pace_rate(&p) == 20);
	learnt_pace_recall(&p, 0.001, SECOND, MOST);
	assert_int_equal(p.state, LEARNT_PACE_ASKING);
	assert_true(learnt_pace_rate(&p) < 0.0011);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_held_back_where_nothing_is_refused),
		TEST(a_bucket_by_the_second_gets_what_it_takes),
		TEST(a_bucket_by_the_minute_gets_nine_tenths),
		TEST(a_bucket_by_the_hour_is_not_asked_all_the_time),
		TEST(one_that_refuses_all_for_an_hour_is_asked_a_dozen_times),
		TEST(from_nothing_it_grows_quickly),
		TEST(it_grows_no_further_than_any_host_takes),
		TEST(slow_ones_are_refused_no_more_often_than_others),
		TEST(one_that_was_out_now_and_then_has_its_mail_soon),
		TEST(one_that_is_out_at_even_intervals_is_met_between_them),
		TEST(a_pace_of_minutes_grows_within_hours),
		TEST(what_was_under_way_when_it_was_cut_cuts_no_more),
		TEST(asking_is_by_one_at_a_time_after_about_twice_the_time),
		TEST(a_day_without_refusals_ends_it),
		TEST(pipelines_are_filled_as_far_as_mail_was_taken),
		TEST(what_was_recalled_is_as_it_was),
	};
	return RUN(tests);
}
