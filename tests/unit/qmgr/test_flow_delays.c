/* SPDX-License-Identifier: ISC */
/* How long mail of a thousand flows waits at one site, beside a site that could serve all of them at once, each by its weight. */
#include "tests/unit/qmgr/world.h"

#include "qmgr/message.h"
#include "qmgr/sched/flow.h"
#include "tests/unit/base/sanitized.h"

enum {
	FLOWS = 1000,
	SEEDS = SANITIZED ? 1 : 5,
	BURST_MAX = 12,
	WEIGHT_MAX = 10,
	COMES_UNTIL = FLOWS * BURST_MAX / 4,
	LATE_MAX = FLOWS / 100
};

#define RATIO_MAX 1.5

static uint64_t chance;

static int below(int n)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return (int)(chance % (uint64_t)n);
}

/* Time goes in deliveries: the site is never idle. */
static struct load {
	int weight, burst, at;	/* so many messages come at this time */
	double left;		/* of the ideal site: messages that it has not served */
	int ended, ideal_ended; /* of each site */
	double waited, ideal;	/* the sum over its messages */
} load[FLOWS];

static void begin_loads(bool at_once)
{
	struct buf conf = {0};
	buf_puts(&conf, "transport smtp { destination_concurrency_limit = 1 "
			"initial_destination_concurrency = 1 destination_recipient_limit = 1 "
			"connection_max_messages = 0 connection_max_age = 0 }\n");
	for (int f = 0; f < FLOWS; f++) {
		load[f] = (struct load){.weight = 1 + below(WEIGHT_MAX),
					.burst = 1 + below(BURST_MAX),
					.at = at_once ? 0 : below(COMES_UNTIL)};
		buf_printf(&conf, "flow \"f%d.test\" { weight = %d }\n", f, load[f].weight);
	}
	begin(buf_cstr(&conf));
	buf_fini(&conf);
}

static void bring_burst(int f)
{
	static uint64_t last_id;
	char sender[40];
	snprintf(sender, sizeof sender, "x@f%d.test", f);
	for (int i = 0; i < load[f].burst; i++) {
		arrive(mail(++last_id * FLOWS + (uint64_t)f, sender, "x@a.test"));
		while (questions.n > 0)
			answer("a.test", "10 mx.a.test 192.0.2.1");
		ready_all();
	}
	load[f].left += load[f].burst;
}

/* The ideal site's delivery of one message's worth, shared among all that have mail there. */
static void serve_ideally(int now)
{
	for (double work = 1; work > 1e-9;) {
		double weights = 0, step = work;
		for (int f = 0; f < FLOWS; f++)
			weights += load[f].left > 1e-9 ? load[f].weight : 0;
		if (weights == 0)
			return;
		for (int f = 0; f < FLOWS; f++)
			if (load[f].left > 1e-9 && load[f].left * weights / load[f].weight < step)
				step = load[f].left * weights / load[f].weight;
		for (int f = 0; f < FLOWS; f++) {
			if (load[f].left <= 1e-9)
				continue;
			load[f].left -= step * load[f].weight / weights;
			while (load[f].burst - load[f].ideal_ended > load[f].left + 1 - 1e-6) {
				load[f].ideal_ended++;
				load[f].ideal += now + 1 - load[f].at;
			}
		}
		work -= step;
	}
}

static bool serve_really(int now)
{
	if (given.n == 0)
		return false;
	struct load *l = &load[given_at(0)->id % FLOWS];
	l->ended++;
	l->waited += now + 1 - l->at;
	done(given_at(0), VERDICT_SENT);
	ready_all();
	while (told.n > 0)
		forget(take(&told, 0));
	return true;
}

static void run_loads(void)
{
	bool busy = true;
	for (int now = 0; busy || now < COMES_UNTIL; now++) {
		for (int f = 0; f < FLOWS; f++)
			if (load[f].at == now)
				bring_burst(f);
		busy = serve_really(now);
		serve_ideally(now);
	}
}

/* Returns how many flows waited for longer than RATIO_MAX times the ideal. Each newcomer has one message ahead of those who have had some:
 * whoever ideally would just have ended before many come, ends behind one of each. */
static int count_late(uint64_t seed, bool at_once)
{
	int late = 0;
	double worst = 0, waited = 0, ideal = 0;
	chance = seed * UINT64_C(0x9e3779b97f4a7c15);
	begin_loads(at_once);
	run_loads();
	for (int f = 0; f < FLOWS; f++) {
		const struct load *l = &load[f];
		assert_int_equal(l->ended, l->burst);
		assert_int_equal(l->ideal_ended, l->burst);
		assert_true(l->waited < l->ideal + (double)l->burst * FLOWS);
		worst = l->waited / l->ideal > worst ? l->waited / l->ideal : worst;
		late += l->waited > RATIO_MAX * l->ideal;
		waited += l->waited;
		ideal += l->ideal;
	}
	print_message("seed %d: %.3f times as long, at most %.3f; %d above %.1f\n", (int)seed,
		      waited / ideal, worst, late, RATIO_MAX);
	assert_true(waited < 1.05 * ideal);
	return late;
}

static void nearly_all_of_a_thousand_flows_wait_hardly_longer_than_ideally(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		if (seed > 1)
			finish(state);
		assert_in_range(count_late(seed, false), 0, LATE_MAX);
	}
}

/* One message of each goes first, in the order in which they came, whatever the weights. */
static void so_it_is_when_all_come_at_once(void **state)
{
	(void)state;
	assert_in_range(count_late(1, true), 0, LATE_MAX);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nearly_all_of_a_thousand_flows_wait_hardly_longer_than_ideally),
		TEST(so_it_is_when_all_come_at_once),
	};
	return RUN(tests);
}
