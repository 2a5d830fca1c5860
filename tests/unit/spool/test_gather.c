/* SPDX-License-Identifier: ISC */
/* Clients, each with one message after the other, a processor that has to see each of these, and a disk
 * of some speed: what comes of the wait for company. */
#include "tests/unit/base/unit.h"

#include "spool/gather.h"
#include "tests/unit/spool/chance.h"

#include <stdlib.h>

enum {
	CLIENTS = 500,
	MESSAGES = 20000,
	ROUND_TRIP_US = 150, /* from an answer to the next message, on an idle machine */
	WORK_US = 25,	     /* of the processor, for each message */
	WAKING_US = 50,	     /* and for each commit */
};

static const int64_t NEVER = INT64_MAX;
static const int64_t disks_us[] = {30, 100, 350, 1000, 10000, 50000};
enum { DISKS = sizeof disks_us / sizeof *disks_us };

struct client {
	enum { SENDS, WAITS, IN_COMMIT } state;
	int64_t begins_us, comes_us; /* SENDS: its transaction, its message */
	int64_t answered_us;
};

static struct stage {
	struct gather gather;
	struct chance chance;
	struct client client[CLIENTS];
	int clients, idle; /* idle: others, in the middle of a message that does not go on */
	int64_t disk_us, now_us, busy_until_us, began_us, synced_us;
	bool gathers;
	int ntook, commits;
	int64_t took_us[MESSAGES];
} st;

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void send_next(struct client *c)
{
	int64_t from_us = st.now_us + ROUND_TRIP_US / 2 + chance_below(&st.chance, ROUND_TRIP_US);
	c->state = SENDS;
	c->answered_us = st.now_us;
	c->comes_us = st.busy_until_us = later(from_us, st.busy_until_us) + WORK_US;
	c->begins_us = c->comes_us - ROUND_TRIP_US / 2;
}

static int under_way(void)
{
	int n = st.idle;
	for (int i = 0; i < st.clients; i++)
		n += st.client[i].state == SENDS && st.client[i].begins_us <= st.now_us;
	return n;
}

/* While it commits, the spool takes nothing. */
static void take_messages(void)
{
	if (st.synced_us != NEVER)
		return;
	for (int i = 0; i < st.clients; i++) {
		struct client *c = &st.client[i];
		if (c->state != SENDS || c->comes_us > st.now_us)
			continue;
		c->state = WAITS;
		gather_came(&st.gather, st.now_us, c->comes_us, c->answered_us, false);
	}
}

static void begin_commit(void)
{
	gather_commit(&st.gather, st.now_us);
	st.began_us = st.now_us;
	st.synced_us = st.now_us + st.disk_us * (80 + chance_below(&st.chance, 60)) / 100;
	st.commits++;
	for (int i = 0; i < st.clients; i++)
		if (st.client[i].state == WAITS)
			st.client[i].state = IN_COMMIT;
}

static void end_commit(void)
{
	st.synced_us = NEVER;
	gather_synced(&st.gather, st.now_us, st.now_us - st.began_us);
	st.busy_until_us = later(st.busy_until_us, st.now_us) + WAKING_US;
	for (int i = 0; i < st.clients; i++) {
		struct client *c = &st.client[i];
		if (c->state != IN_COMMIT)
			continue;
		if (st.ntook < MESSAGES)
			st.took_us[st.ntook++] = st.now_us - c->comes_us;
		send_next(c);
	}
}

/* When a waiting commit begins by itself; NEVER: there is none. */
static int64_t commit_due(void)
{
	if (st.synced_us != NEVER || st.gather.stores == 0)
		return NEVER;
	return st.now_us + (st.gathers ? gather_wait_us(&st.gather, st.now_us, under_way()) : 0);
}

static int64_t next_event(void)
{
	int64_t next_us = sooner(st.synced_us, commit_due());
	for (int i = 0; i < st.clients; i++) {
		const struct client *c = &st.client[i];
		if (c->state == SENDS && c->begins_us > st.now_us)
			next_us = sooner(next_us, c->begins_us);
		else if (c->state == SENDS && c->comes_us > st.now_us)
			next_us = sooner(next_us, c->comes_us);
	}
	return next_us;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

/* Returns messages a second; the times are sorted. */
static double play(int clients, int idle, int64_t disk_us, bool gathers)
{
	st = (struct stage){.clients = clients,
			    .idle = idle,
			    .disk_us = disk_us,
			    .synced_us = NEVER,
			    .gathers = gathers};
	gather_init(&st.gather, 0);
	for (int i = 0; i < clients; i++)
		send_next(&st.client[i]);
	while (st.ntook < MESSAGES) {
		st.now_us = next_event();
		if (st.synced_us <= st.now_us)
			end_commit();
		take_messages();
		if (commit_due() <= st.now_us)
			begin_commit();
	}
	qsort(st.took_us, MESSAGES, sizeof *st.took_us, compare);
	return MESSAGES * 1e6 / (double)st.now_us;
}

static int64_t quantile(int percent)
{
	return st.took_us[(MESSAGES - 1) * percent / 100];
}

static void one_client_alone_never_waits(void **state)
{
	(void)state;
	for (int d = 0; d < DISKS; d++) {
		play(1, 0, disks_us[d], true);
		assert_true(quantile(100) <= disks_us[d] * 14 / 10);
	}
}

static void each_disk_gets_a_wait_that_suits_it(void **state)
{
	static const int clients[] = {2, 10, 50, 200, CLIENTS};
	(void)state;
	for (int d = 0; d < DISKS; d++) {
		for (size_t n = 0; n < sizeof clients / sizeof *clients; n++) {
			double hasty = play(clients[n], 0, disks_us[d], false);
			int hasty_commits = st.commits;
			double rate = play(clients[n], 0, disks_us[d], true);
			print_message("%6ld us, %3d clients: %6.0f/s p50 %ld p99 %ld us; in haste "
				      "%6.0f/s; "
				      "%.2f of its commits\n",
				      (long)disks_us[d], clients[n], rate, (long)quantile(50),
				      (long)quantile(99), hasty,
				      (double)st.commits / hasty_commits);
			assert_true(rate > 0.9 * hasty);
			assert_true(st.commits <= hasty_commits * 11 / 10);
			assert_true(quantile(99) <= 3 * quantile(50));
			assert_true(quantile(100) <= 7 * (disks_us[d] + WAKING_US));
		}
	}
}

static void those_who_do_not_go_on_are_not_waited_for(void **state)
{
	(void)state;
	for (int d = 0; d < DISKS; d++) {
		play(1, 99, disks_us[d], true);
		assert_true(quantile(99) <= disks_us[d] * 14 / 10);
	}
}

static void what_nobody_waits_for_comes_along_or_has_the_disk_idle_most_of_the_time(void **state)
{
	(void)state;
	struct gather g;
	gather_init(&g, 0);
	gather_synced(&g, 900, 100);
	gather_commit(&g, 1000);
	assert_int_equal(gather_wait_us(&g, 1100, 0), 700);
	assert_int_equal(gather_wait_us(&g, 1800, 0), 0);
	gather_came(&g, 1100, 1100, 0, false);
	assert_int_equal(gather_wait_us(&g, 1100, 0), 0);
	gather_init(&g, 0);
	gather_synced(&g, 0, 20000);
	assert_int_equal(gather_wait_us(&g, 0, 0), 10000);
}

/* Of two clients one has brought a large message, whose file took long to sync. */
static void nobody_waits_for_the_next_large_message(void **state)
{
	(void)state;
	struct gather g;
	gather_init(&g, 0);
	gather_synced(&g, 0, 1000);
	for (int i = 1; i <= 100; i++) {
		int64_t now_us = i * 2000;
		bool large = i % 2;
		gather_came(&g, now_us, large ? now_us - 900 : now_us - 10, now_us - 1000, large);
		gather_came(&g, now_us, now_us - 10, now_us - 1000, false);
		gather_commit(&g, now_us);
		gather_synced(&g, now_us + 1000, 1000);
		assert_int_equal(g.absent, large ? 1 : 2);
	}
	assert_true(g.waking_us < 20);
}

static void after_a_pause_the_first_message_goes_at_once(void **state)
{
	(void)state;
	struct gather g;
	gather_init(&g, 0);
	gather_synced(&g, 0, 1000);
	for (int i = 1; i <= 100; i++) {
		gather_came(&g, i * 100, i * 100, 0, false);
		gather_commit(&g, i * 100);
	}
	gather_came(&g, 20000, 20000, 0, false);
	assert_true(gather_wait_us(&g, 20000, 10) > 0);
	gather_commit(&g, 20000000);
	gather_came(&g, 30000000, 30000000, 0, false);
	gather_commit(&g, 30000000);
	gather_came(&g, 40000000, 40000000, 0, false);
	assert_int_equal(gather_wait_us(&g, 40000000, 10), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_client_alone_never_waits),
		cmocka_unit_test(each_disk_gets_a_wait_that_suits_it),
		cmocka_unit_test(those_who_do_not_go_on_are_not_waited_for),
		cmocka_unit_test(
			what_nobody_waits_for_comes_along_or_has_the_disk_idle_most_of_the_time),
		cmocka_unit_test(nobody_waits_for_the_next_large_message),
		cmocka_unit_test(after_a_pause_the_first_message_goes_at_once),
	};
	return RUN(tests);
}
