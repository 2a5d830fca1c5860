/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"
#include "tests/unit/base/sanitized.h"

#include "qmgr/message.h"
#include "qmgr/sched/job.h"

#include <time.h>

/* Random mixes of messages that come at random times, slip past each other, and past those that
 * slipped past others, at sites that take so many deliveries at once and answer them in any order. A
 * job whose sites are all full is a blocker.
 *
 * The seed is printed; SEED=n in the environment plays the mixes of that seed again. */
enum { MIXES = SANITIZED ? 3 : 12, MIX = 150, SITES = 5 };

struct play {
	int sites, window, cost;
	bool scattered; /* the recipients of one message, over all sites */
	int n;		/* messages so far, numbered from 1 */
	int seen;	/* deliveries in box `given` that were looked at */
};

static struct play play;
static int size_of[MIX + 1], waiting[MIX + 1][SITES];
static int64_t first_slot[MIX + 1], last_slot[MIX + 1], slots[SITES];
static int slips;
static uint64_t seed, state;

static int below(int n)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (int)((state >> 33) % (uint64_t)n);
}

static int random_size(void)
{
	static const int sizes[] = {1, 1, 1, 2, 3, 5, 8, 10, 30, 100, 300};
	return sizes[below(11)] + below(3);
}

static void answer_all_questions(void)
{
	while (questions.n > 0) {
		char name[40], host[60];
		snprintf(name, sizeof name, "%s", ((struct resolve *)questions.note[0])->name);
		snprintf(host, sizeof host, "10 mx-%s 192.0.2.%d", name, name[0]);
		answer(name, host);
	}
}

static void send_to_sites(uint64_t id, int size)
{
	struct envelope *e = mail(id, "", NULL);
	int site = below(play.sites);
	for (int i = 0; i < size; i++) {
		char to[40];
		if (play.scattered)
			site = below(play.sites);
		snprintf(to, sizeof to, "x%d@%c.test", i, 'a' + site);
		envelope_add(e, to);
		waiting[id][site]++;
	}
	arrive(e);
	answer_all_questions();
}

static int site_of(const struct delivery *d)
{
	return strchr(d->rcpt[0].address, '@')[1] - 'a';
}

/* A slip: an older message waits for the very place that this one gets. */
static void count_slot(const struct delivery *d)
{
	int site = site_of(d);
	bool slipped = false;
	for (uint64_t id = 1; id < d->id; id++)
		slipped |= waiting[id][site] > 0;
	slips += slipped;
	if (first_slot[d->id] < 0)
		first_slot[d->id] = slots[site];
	last_slot[d->id] = slots[site]++;
	assert_in_range(waiting[d->id][site]--, 1, size_of[d->id]);
}

/* Whatever a job has lent, it can earn until its end. */
static void check_accounts(void)
{
	for (struct list *l = q->sched.transports->jobs.next; l != &q->sched.transports->jobs;
	     l = l->next) {
		const struct job *job = list_entry(l, struct job, in_time);
		assert_true(job->stack.available + job_needed(job) >= 0);
	}
}

static void look(void)
{
	for (; play.seen < given.n; play.seen++)
		count_slot(given_at(play.seen));
	check_accounts();
}

static void finish_one(int i)
{
	done(given_at(i), VERDICT_SENT);
	play.seen--;
	while (told.n > 0)
		forget(take(&told, 0));
	look();
}

static void come(int size)
{
	int id = ++play.n;
	size_of[id] = size;
	first_slot[id] = -1;
	memset(waiting[id], 0, sizeof waiting[id]);
	send_to_sites((uint64_t)id, size);
	look();
}

/* Every connection that a site may have is open before the messages come. */
static void open_all(void)
{
	struct envelope *e = mail(MIX + 1, "", NULL);
	for (int i = 0; i < play.sites * play.window; i++) {
		char to[40];
		snprintf(to, sizeof to, "x%d@%c.test", i, 'a' + i % play.sites);
		envelope_add(e, to);
	}
	arrive(e);
	answer_all_questions();
	for (int i = 0; i < opened.n; i++)
		ready(open_at(i), 1);
	assert_int_equal(given.n, play.sites * play.window);
	while (given.n > 0)
		done(given_at(0), VERDICT_SENT);
}

static void begin_play(bool scattered)
{
	char text[700];
	bool loans = below(2);
	play = (struct play){.sites = 1 + below(SITES),
			     .window = 1 + below(3),
			     .cost = 2 + below(5),
			     .scattered = scattered};
	memset(slots, 0, sizeof slots);
	slips = 0;
	snprintf(text, sizeof text,
		 "transport smtp { connection_limit = 0 connection_max_messages = 0 "
		 "pipeline_depth = 1 destination_recipient_limit = 1 "
		 "destination_concurrency_limit = %d initial_destination_concurrency = %d "
		 "delivery_slot_cost = %d minimum_delivery_slots = %d delivery_slot_discount = %d "
		 "delivery_slot_loan = %d }",
		 play.window, play.window, play.cost, below(4), loans ? below(101) : 0,
		 loans ? below(6) : 0);
	begin(text);
	open_all();
}

static void play_mix(bool scattered)
{
	begin_play(scattered);
	come(200);
	while (given.n > 0) {
		while (play.n < MIX && below(6) == 0) {
			come(random_size());
			if (below(3) == 0)
				pass_time(below(2000));
		}
		finish_one(below(given.n));
	}
	finish(NULL);
}

static void seed_mix(uint64_t mix)
{
	state = seed * UINT64_C(0x9e3779b97f4a7c15) + mix;
	for (int i = 0; i < 4; i++)
		below(2);
}

/* Of the slots of its site from a job's first to its last, at most so many were others': a job of n
 * entries is stretched to no more than n * k / (k - 1), however deep the others slip. */
static void no_job_is_inflated_beyond_its_bound(void **unused)
{
	(void)unused;
	for (uint64_t mix = 0; mix < MIXES; mix++) {
		seed_mix(mix);
		play_mix(false);
		for (int i = 1; i <= play.n; i++) {
			int64_t took = last_slot[i] - first_slot[i] + 1;
			assert_true(took * (play.cost - 1) <= (int64_t)size_of[i] * play.cost);
		}
	}
}

/* Who slips past one job at one site may come before another at a second, that has not paid: so what
 * is bounded is the sum. For each slot that was taken from an older job, k others were paid. */
static void no_more_slips_past_than_was_paid_for(void **unused)
{
	(void)unused;
	for (uint64_t mix = 0; mix < MIXES; mix++) {
		int64_t payable = 0;
		seed_mix(mix);
		play_mix(true);
		for (int i = 1; i <= play.n; i++)
			payable += size_of[i] / play.cost;
		assert_in_range(slips, 0, payable);
	}
}

int main(void)
{
	const char *given_seed = getenv("SEED");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_job_is_inflated_beyond_its_bound),
		cmocka_unit_test(no_more_slips_past_than_was_paid_for),
	};
	seed = given_seed ? strtoull(given_seed, NULL, 10) : (uint64_t)time(NULL);
	print_message("SEED=%llu\n", (unsigned long long)seed);
	return RUN(tests);
}
