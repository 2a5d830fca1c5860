/* SPDX-License-Identifier: ISC */
/* The queue's model by itself: the test stands where the scheduler would. */
#include "tests/unit/sim/unit.h"

#include "base/clock.h"
#include "base/mem.h"
#include "sim/stage.h"
#include "spool/spool.h"

enum { LATER_MS = 1000000 };

static struct world world;
static struct stage *stage;
static struct arrivals arrivals;
static struct tally *told;
static struct envelope *come[20];
static int ncome, nanswer;
static struct spool_unpark answer;

static void hear(void *owner, struct note *note)
{
	(void)owner;
	if (note->type == SPOOL_ARRIVAL) {
		struct spool_arrival *a = (struct spool_arrival *)note;
		come[ncome++] = a->envelope;
		content_unref(a->content);
	} else {
		assert_int_equal(note->type, SPOOL_UNPARK);
		answer = *(struct spool_unpark *)note;
		nanswer++;
	}
	free(note);
}

static int begin(void **state)
{
	(void)state;
	struct buf errors = {0};
	ran_of = scenario_of(ONE_HOST("") ARRIVE("messages = 6 rate = \"1000/s\""));
	assert_true(arrivals_make(&arrivals, ran_of, 1, &errors));
	told = tally_new();
	world_init(&world, ran_of, &arrivals, 1, false, told);
	stage = &world.stage[0];
	qmgr_loop(stage->q)->mailbox.receive = hear;
	ncome = nanswer = 0;
	world_rest(&world, 1000);
	assert_int_equal(ncome, 6);
	return 0;
}

static int end(void **state)
{
	for (int i = 0; i < ncome; i++)
		envelope_free(&come[i]);
	world_fini(&world);
	tally_free(&told);
	arrivals_fini(&arrivals);
	return forget_run(state);
}

/* It has been tried in vain. */
static void put_off(int i, uint16_t site, bool parked, int64_t delay_ms)
{
	struct spool_release *r = mem_zalloc(sizeof *r);
	struct recipient *tried = &come[i]->rcpt[0];
	verdict_unref(tried->last);
	tried->last = verdict_new(VERDICT_DEFERRED, 450, NULL, NULL, "later");
	tried->tries++;
	come[i]->due_ms = clock_wall_ms() + delay_ms;
	*r = (struct spool_release){.note.type = SPOOL_RELEASE,
				    .id = come[i]->id,
				    .envelope = come[i],
				    .site = site,
				    .parked = parked};
	come[i] = NULL;
	model_spool_note(stage, &r->note);
}

static void unpark(uint16_t site, uint32_t most, uint32_t parked, uint32_t waiting)
{
	struct spool_unpark *u = mem_zalloc(sizeof *u);
	*u = (struct spool_unpark){.note.type = SPOOL_UNPARK, .site = site, .most = most};
	int n = nanswer;
	model_spool_note(stage, &u->note);
	world_rest(&world, 1);
	mailbox_drain(&qmgr_loop(stage->q)->mailbox);
	assert_int_equal(nanswer, n + 1);
	assert_int_equal(answer.site, site);
	assert_int_equal(answer.parked, parked);
	assert_int_equal(answer.waiting, waiting);
	assert_int_equal(told->nfault, 0);
}

static void the_oldest_of_one_site_are_made_due(void **state)
{
	(void)state;
	uint64_t id[6];
	for (int i = 0; i < 6; i++)
		id[i] = come[i]->id;
	for (int i = 5; i >= 0; i--)
		put_off(i, i % 2 ? 1 : SPOOL_SITE_MAX, true, LATER_MS - i);
	unpark(1, 0, 3, 3);
	assert_int_equal(ncome, 6);
	unpark(1, 2, 1, 3); /* they are handed over behind the answer */
	assert_int_equal(ncome, 8);
	assert_int_equal(come[6]->id, id[1]);
	assert_int_equal(come[7]->id, id[3]);
	unpark(1, 9, 0, 1);
	assert_int_equal(come[8]->id, id[5]);
	unpark(1, 9, 0, 0);
	unpark(SPOOL_SITE_MAX, 1, 2, 3);
	assert_int_equal(come[9]->id, id[0]);
	unpark(2, 1, 0, 0);
	assert_int_equal(ncome, 10);
}

static void one_that_is_older_and_parked_later_is_found(void **state)
{
	(void)state;
	uint64_t first = come[0]->id;
	put_off(4, 1, true, LATER_MS);
	put_off(5, 1, true, LATER_MS);
	unpark(1, 1, 1, 2);
	put_off(0, 1, true, LATER_MS);
	unpark(1, 1, 1, 2);
	assert_int_equal(ncome, 8);
	assert_int_equal(come[7]->id, first);
}

static void what_is_due_by_its_time_waits_no_longer(void **state)
{
	(void)state;
	put_off(0, 1, true, 500);
	put_off(1, 1, false, LATER_MS);
	unpark(1, 0, 1, 2);
	world_rest(&world, 600);
	assert_int_equal(ncome, 7);
	unpark(1, 5, 0, 1);
	assert_int_equal(ncome, 7);
}

static void give_credit(int64_t n)
{
	struct spool_credit *c = mem_zalloc(sizeof *c);
	*c = (struct spool_credit){.note.type = SPOOL_CREDIT, .n = n};
	model_spool_note(stage, &c->note);
}

static void what_waits_for_credit_is_parked_until_then_and_comes_once(void **state)
{
	(void)state;
	const int64_t all = ran_of->conf->queue.message_active_limit;
	put_off(0, 1, true, 500);
	give_credit(-all);
	world_rest(&world, 600);
	unpark(1, 0, 1, 1);
	unpark(1, 5, 0, 1);
	assert_int_equal(ncome, 6);
	give_credit(all);
	unpark(1, 5, 0, 0);
	world_rest(&world, 5 * LATER_MS);
	assert_int_equal(ncome, 7);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_oldest_of_one_site_are_made_due),
		TEST(one_that_is_older_and_parked_later_is_found),
		TEST(what_is_due_by_its_time_waits_no_longer),
		TEST(what_waits_for_credit_is_parked_until_then_and_comes_once),
	};
	return RUN(tests);
}
