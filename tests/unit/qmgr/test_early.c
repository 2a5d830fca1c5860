/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/early.h"

enum { SLOTS = 10 };

static struct early slot[SLOTS];
static int nslot;

static void take_slot(void *context, struct peer *p)
{
	(void)context;
	assert_true(nslot < SLOTS);
	slot[nslot] = (struct early){0};
	early_take(&slot[nslot++], p);
}

static int begin_early(void **state)
{
	(void)state;
	begin("transport \"smtp\" { initial_destination_concurrency = 1 }\n");
	qmgr_bind_early(q, take_slot);
	nslot = 0;
	return 0;
}

static void mail_to(uint64_t id, const char *to)
{
	send_mail(id, to);
	if (questions.n > 0)
		answer("one.test", "10 mx.test 192.0.2.1");
}

static int64_t tries_in_release(void)
{
	struct spool_release *r = next_told(SPOOL_RELEASE);
	int64_t tries = r->envelope ? (int64_t)r->envelope->rcpt[0].tries : -1;
	forget(r);
	return tries;
}

static void fail_slot(int i)
{
	struct verdict *why = verdict_new(VERDICT_DEFERRED, 421, "4.4.2", "mx.test", "too many");
	early_failed(&slot[i], why);
	verdict_unref(why);
	early_end(&slot[i]);
	settle();
}

static void an_entry_is_taken_before_there_is_a_connection(void **state)
{
	(void)state;
	mail_to(1, "a@one.test");
	assert_int_equal(opened.n, 0);
	assert_int_equal(nslot, 1);
	assert_int_equal(slot[0].site->busy, 1);
	assert_int_equal(slot[0].site->queue.transport->connections, 1);
	mail_to(2, "b@one.test");
	assert_int_equal(nslot, 1); /* as wide as its window */
	early_drop(&slot[0]);
}

static void what_is_sent_is_recorded_and_its_slot_used_again(void **state)
{
	(void)state;
	mail_to(1, "a@one.test");
	mail_to(2, "b@one.test");
	struct verdict *sent = verdict_new(VERDICT_SENT, 250, NULL, "mx.test", "ok");
	early_delivered(&slot[0], &sent);
	verdict_unref(sent);
	early_end(&slot[0]);
	assert_int_equal(nslot, 2);
	struct spool_delivered *d = next_told(SPOOL_DELIVERED);
	assert_int_equal(d->id, 1);
	forget(d);
	assert_int_equal(tries_in_release(), -1);
	assert_int_equal(slot[1].site->busy, 1);
	early_drop(&slot[1]);
}

static void without_a_connection_the_entry_is_deferred(void **state)
{
	(void)state;
	mail_to(1, "a@one.test");
	fail_slot(0);
	assert_int_equal(tries_in_release(), 1);
	assert_string_equal(site_state_name(q->db.sites), "dead");
	assert_int_equal(q->db.sites->busy, 0);
}

static void a_dead_site_lives_again_when_its_time_is_over(void **state)
{
	(void)state;
	mail_to(1, "a@one.test");
	fail_slot(0);
	tries_in_release();
	mail_to(2, "b@one.test");
	assert_int_equal(nslot, 1);
	assert_int_equal(tries_in_release(), 1); /* POSTFIX counts it */
	pass_time(q->sched.conf->queue.minimal_backoff_time);
	while (told.n > 0)
		forget(take(&told, 0));
	mail_to(3, "c@one.test");
	assert_int_equal(nslot, 2);
	early_drop(&slot[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_early, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_entry_is_taken_before_there_is_a_connection),
		TEST(what_is_sent_is_recorded_and_its_slot_used_again),
		TEST(without_a_connection_the_entry_is_deferred),
		TEST(a_dead_site_lives_again_when_its_time_is_over),
	};
	return RUN(tests);
}
