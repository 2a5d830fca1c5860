/* SPDX-License-Identifier: ISC */
/* What a section "flow" says beside weight and share: rate, lifetime, transport; and priorities within a flow. */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/admission.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/domain_mail.h"
#include "qmgr/message.h"
#include "qmgr/sched/flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SECOND = 1000, MINUTE = 60 * SECOND };

#define ONE_EACH                                                                                   \
	"transport smtp { destination_concurrency_limit = 1 connection_max_age = 0 "               \
	"connection_max_messages = 0 connection_idle_timeout = 1h }\n"

static void send_as(uint64_t id, const char *sender, const char *to)
{
	arrive(mail(id, sender, to));
	answer_each();
	ready_all();
}

static void send_to_sites(uint64_t id, const char *sender, int n)
{
	for (int i = 0; i < n; i++) {
		char to[40];
		snprintf(to, sizeof to, "x@%d.test", i);
		send_as(id + (uint64_t)i, sender, to);
	}
}

static void answer_what_is_given(void)
{
	for (int n = given.n; n > 0; n--)
		done(given_at(0), VERDICT_SENT);
	while (told.n > 0)
		forget(take(&told, 0));
}

/* --- rate */

static void deliveries_of_a_flow_are_so_many_in_a_time_at_all_sites(void **state)
{
	(void)state;
	begin(ONE_EACH "flow a.test { rate = 1/s }");
	send_to_sites(1, "x@a.test", 10);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(given.n, 1);
		answer_what_is_given();
		pass_time(999);
		ready_all();
		assert_int_equal(given.n, 0);
		pass_time(1);
		ready_all();
	}
	assert_int_equal(given.n, 0);
	destdb_check(&q->db);
}

static void no_connection_is_opened_for_what_is_not_due(void **state)
{
	(void)state;
	names_stay = true;
	begin(ONE_EACH "flow a.test { rate = 1/m }");
	send_to_sites(1, "x@a.test", 10);
	assert_int_equal(opened.n, 1);
	pass_time(MINUTE);
	assert_int_equal(opened.n, 2);
}

static void others_go_on_at_the_same_site(void **state)
{
	(void)state;
	names_stay = true;
	begin(ONE_EACH "flow a.test { rate = 1/m }");
	for (uint64_t id = 1; id <= 10; id++)
		send_as(id, "x@a.test", "x@dest.test");
	for (uint64_t id = 11; id <= 20; id++)
		send_as(id, "x@b.test", "x@dest.test");
	for (int i = 0; i < 11; i++) {
		assert_int_equal(given.n, 1);
		assert_int_equal(given_at(0)->id > 10, i > 0);
		answer_what_is_given();
	}
	assert_int_equal(given.n, 0);
	pass_time(MINUTE);
	ready_all();
	assert_int_equal(given.n, 1);
	assert_int_equal(given_at(0)->id, 2);
	destdb_check(&q->db);
}

static void it_says_so_and_until_when(void **state)
{
	(void)state;
	begin(ONE_EACH "flow a.test { rate = 1/m }");
	send_to_sites(1, "x@a.test", 2);
	const struct admission l = admission_of_first(site_named("mx-1.test"));
	assert_int_equal(l.constraint, CONSTRAINT_FLOW_RATE);
	assert_int_equal(l.until_ms, clock_ms + MINUTE);
}

static void while_it_waits_nothing_wakes_up(void **state)
{
	(void)state;
	begin(ONE_EACH "flow a.test { rate = 1/h }");
	send_to_sites(1, "x@a.test", 3);
	answer_what_is_given();
	assert_true(list_empty(&q->sched.dirty));
	assert_true(timers_next(&q->sched.loop->timers) > clock_ms + SECOND);
}

static void what_its_connection_could_not_take_is_not_counted(void **state)
{
	(void)state;
	begin(ONE_EACH "flow a.test { rate = 1/m }");
	arrive(mail(1, "x@a.test", "x@0.test"));
	answer("0.test", "10 mx-0.test 192.0.2.1");
	arrive(mail(2, "x@a.test", "x@1.test"));
	answer("1.test", "10 mx-1.test 192.0.2.2");
	assert_int_equal(opened.n, 1);
	lose(open_at(0), "refused");
	pass_time(1);
	assert_int_equal(opened_to("mx-1.test"), 1);
}

static void who_sends_one_at_a_time_keeps_to_it(void **state)
{
	(void)state;
	names_stay = true;
	begin(ONE_EACH "flow a.test { rate = 1/m }");
	send_as(1, "x@a.test", "x@dest.test");
	answer_what_is_given();
	assert_int_equal(q->sched.nactive, 0);
	send_as(2, "x@a.test", "x@dest.test");
	assert_int_equal(given.n, 0);
	pass_time(MINUTE);
	ready_all();
	assert_int_equal(given.n, 1);
	answer_what_is_given();
	pass_time(2 * MINUTE);
	assert_int_equal(HASH_COUNT(q->sched.flows), 0); /* forgotten in the end */
}

/* The second goes on without those recipients, and no sooner than before. */
static void what_is_taken_from_mail_that_waits_gives_nothing_back_to_its_flow(void **state)
{
	(void)state;
	begin(ONE_EACH "route \"*\" { relay = r.test } flow here.test { rate = 1/h }");
	send_as(1, "x@here.test", "x@a.test");
	answer_what_is_given();
	struct envelope *e = mail(2, "x@here.test", "x@a.test");
	envelope_add(e, "x@b.test");
	arrive(e);
	assert_int_equal(given.n, 0);
	suspend_begin(&q->db, "a.test", SUSPEND_DOMAIN, 0);
	domain_mail_hold(q, "a.test");
	settle();
	ready_all();
	assert_int_equal(given.n, 0);
	reload(ONE_EACH "route \"*\" { relay = r.test } route b.test { relay = s.test }"
			"flow here.test { rate = 1/h }");
	answer_each();
	ready_all();
	assert_int_equal(given.n, 0);
}

static void a_reload_changes_the_rate_at_once(void **state)
{
	(void)state;
	begin(ONE_EACH "flow a.test { rate = 1/h }");
	for (uint64_t id = 1; id <= 5; id++)
		send_as(id, "x@a.test", "x@dest.test");
	answer_what_is_given();
	assert_int_equal(given.n, 0);
	reload(ONE_EACH "flow a.test { rate = 1/s }");
	pass_time(SECOND);
	answer_each();
	ready_all();
	assert_int_equal(given.n, 1);
	answer_what_is_given();
	reload(ONE_EACH);
	answer_each();
	ready_all();
	assert_int_equal(given.n, 1);
	answer_what_is_given();
	destdb_check(&q->db);
}

static void a_high_rate_is_kept_in_the_mean(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 1 connection_max_age = 0 "
	      "connection_max_messages = 0 }\nflow a.test { rate = 100/s }");
	for (uint64_t id = 1; id <= 400; id++)
		send_as(id, "x@a.test", "x@dest.test");
	int n = 0;
	for (int ms = 0; ms < 2 * SECOND; ms++) {
		while (given.n > 0) {
			n++;
			answer_what_is_given();
			ready_all();
		}
		pass_time(1);
		ready_all();
	}
	assert_in_range(n, 198, 208);
}

/* What else the order keeps, whoever is barred and comes back: charged and given back, reloads, mail that comes and is cancelled. */
static void whatever_happens_nothing_is_lost_of_the_order(void **state)
{
	(void)state;
	uint64_t seed = 88172645463325252u;
	begin(ONE_EACH "flow a.test { rate = 3/s } flow b.test { rate = 100/s weight = 3 }");
	static const char *const senders[] = {"x@a.test", "x@b.test", "x@c.test"};
	uint64_t id = 0;
	for (int step = 0; step < 6000; step++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		char to[40];
		snprintf(to, sizeof to, "x@%d.test", (int)((seed >> 20) % 5));
		if (seed % 10 < 4)
			send_as(++id, senders[(seed >> 8) % 3], to);
		else if (seed % 10 < 8 && given.n > 0)
			done(given_at((int)((seed >> 8) % (uint64_t)given.n)), VERDICT_SENT);
		else if (seed % 10 == 8 && given.n > 0)
			put_back(given_at((int)((seed >> 8) % (uint64_t)given.n)));
		else if (seed % 50 == 9)
			cancel(id);
		else if (seed % 500 == 19)
			reload(step % 2 ? ONE_EACH "flow a.test { rate = 5/s }"
					: ONE_EACH
				       "flow a.test { rate = 3/s } flow b.test { rate = "
				       "100/s weight = 3 }");
		else
			pass_time((int64_t)((seed >> 8) % 200));
		answer_each();
		ready_all();
		if (step % 100 == 0)
			destdb_check(&q->db);
		while (told.n > 0)
			forget(take(&told, 0));
	}
	for (int i = 0; i < 100000 && q->sched.nactive > 0; i++) {
		answer_what_is_given();
		pass_time(200);
		answer_each();
		ready_all();
	}
	assert_int_equal(q->sched.nactive, 0);
}

/* --- priority */

static void send_with(uint64_t id, const char *sender, int8_t priority, int nrcpt)
{
	struct envelope *e = mail(id, sender, "x@dest.test");
	e->priority = priority;
	for (int i = 1; i < nrcpt; i++) {
		char to[40];
		snprintf(to, sizeof to, "x%d@dest.test", i);
		envelope_add(e, to);
	}
	arrive(e);
	answer_each();
	ready_all();
}

static void who_is_served(const uint64_t *ids, int n)
{
	for (int i = 0; i < n; i++) {
		assert_int_equal(given.n, 1);
		assert_int_equal(given_at(0)->id, ids[i]);
		answer_what_is_given();
	}
}

static void a_higher_priority_goes_first_and_age_decides_among_equals(void **state)
{
	(void)state;
	begin(ONE_EACH);
	static const int8_t priority[] = {0, 0, -4, 0, 4, 9, 4, 0, -9};
	for (uint64_t id = 1; id <= 9; id++)
		send_with(id, "x@a.test", priority[id - 1], 1);
	who_is_served((uint64_t[]){1, 6, 5, 7, 2, 4, 8, 3, 9}, 9);
	destdb_check(&q->db);
}

static void a_priority_is_nothing_to_another_flow(void **state)
{
	(void)state;
	begin(ONE_EACH);
	send_with(1, "x@a.test", 9, 1);
	for (uint64_t id = 2; id <= 4; id++)
		send_with(id, "x@a.test", 9, 1);
	for (uint64_t id = 5; id <= 7; id++)
		send_with(id, "x@b.test", -9, 1);
	who_is_served((uint64_t[]){1, 5, 2, 6, 3, 7, 4}, 7);
}

static void nobody_slips_past_a_higher_priority(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 1 destination_recipient_limit = 1 "
	      "connection_max_age = 0 connection_max_messages = 0 connection_idle_timeout = 1h }");
	send_with(1, "x@a.test", 3, 60);
	send_with(2, "x@a.test", 0, 1);
	for (int i = 0; i < 60; i++) {
		assert_int_equal(given_at(0)->id, 1);
		answer_what_is_given();
	}
	assert_int_equal(given_at(0)->id, 2);
	answer_what_is_given();
	send_with(3, "x@a.test", 3, 60);
	send_with(4, "x@a.test", 3, 1);
	int before = 0;
	for (; given_at(0)->id == 3; before++)
		answer_what_is_given();
	assert_in_range(before, 1, 59); /* among equals it does */
	while (given.n > 0)
		answer_what_is_given();
}

/* --- lifetime */

static const char *first_dsn(struct spool_store *s)
{
	const struct message *m = s->owner;
	return m->work.envelope->rcpt[0].last->dsn;
}

static void mail_that_waits_for_its_turn_ends_in_time(void **state)
{
	(void)state;
	begin(ONE_EACH "flow a.test { lifetime = 10m rate = 1/h }");
	send_as(1, "x@a.test", "x@dest.test");
	send_as(2, "x@a.test", "x@dest.test");
	answer_what_is_given();
	pass_time(10 * MINUTE - 1);
	assert_int_equal(q->sched.nactive, 1);
	pass_time(1);
	struct spool_store *report = next_told(SPOOL_STORE);
	assert_string_equal(first_dsn(report), "5.4.7");
	stored(report, true);
	assert_int_equal(q->sched.nactive, 0);
}

static void what_is_past_it_is_not_tried(void **state)
{
	(void)state;
	begin(ONE_EACH "flow a.test { lifetime = 10m }");
	struct envelope *e = mail(1, "x@a.test", "x@dest.test");
	e->arrived_ms -= 10 * MINUTE;
	arrive(e);
	assert_int_equal(questions.n, 0);
	struct spool_store *report = next_told(SPOOL_STORE);
	assert_string_equal(first_dsn(report), "5.4.7");
	stored(report, true);
}

static void what_is_under_way_is_not_cut_off(void **state)
{
	(void)state;
	begin(ONE_EACH "flow a.test { lifetime = 10m }");
	send_as(1, "x@a.test", "x@dest.test");
	pass_time(11 * MINUTE);
	assert_int_equal(given.n, 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
}

static void what_was_deleted_does_not_come_back_at_its_end(void **state)
{
	(void)state;
	begin(ONE_EACH "flow a.test { lifetime = 10m }");
	send_as(1, "x@a.test", "x@dest.test");
	cancel(1);
	pass_time(11 * MINUTE);
	done(given_at(0), VERDICT_DEFERRED);
	is_released(1);
}

static void a_reload_gives_and_takes_lifetimes(void **state)
{
	(void)state;
	begin(ONE_EACH "flow a.test { lifetime = 10m rate = 1/h }");
	send_as(1, "x@a.test", "x@dest.test");
	send_as(2, "x@a.test", "x@dest.test");
	answer_what_is_given();
	reload(ONE_EACH "flow a.test { rate = 1/h }");
	pass_time(20 * MINUTE);
	assert_int_equal(q->sched.nactive, 1);
	reload(ONE_EACH "flow a.test { rate = 1/h lifetime = 30m }");
	pass_time(10 * MINUTE);
	stored(next_told(SPOOL_STORE), true);
	assert_int_equal(q->sched.nactive, 0);
}

/* --- transport */

static const char *transport_to(const char *site)
{
	return site_named(site)->queue.transport->title;
}

#define OWN                                                                                        \
	"transport slow { } transport own { }  flow a.test { transport = own }\n"                  \
	"route named.test { transport = slow }  route smtp.test { transport = smtp }\n"            \
	"route relay.test { relay = { \"[192.0.2.9]:26\" } }"

static void its_transport_carries_its_mail(void **state)
{
	(void)state;
	begin(OWN);
	send_as(1, "x@a.test", "x@dest.test");
	assert_string_equal(transport_to("mx-dest.test"), "own");
	send_as(2, "x@a.test", "x@smtp.test");
	assert_string_equal(transport_to("mx-smtp.test"), "own");
	send_as(3, "x@b.test", "x@other.test");
	assert_string_equal(transport_to("mx-other.test"), "smtp");
}

static void a_route_s_transport_goes_before_it(void **state)
{
	(void)state;
	begin(OWN);
	send_as(1, "x@a.test", "x@named.test");
	assert_string_equal(transport_to("mx-named.test"), "slow");
}

static void a_route_s_relay_stays(void **state)
{
	(void)state;
	begin(OWN);
	send_as(1, "x@a.test", "x@relay.test");
	assert_string_equal(transport_to("[192.0.2.9]:26"), "own");
}

static void a_provider_does_not_change_it(void **state)
{
	(void)state;
	begin(OWN " provider big { mx = { .dest.test } transport = slow }");
	arrive(mail(1, "x@a.test", "x@dest.test"));
	answer("dest.test", "10 mx.dest.test 192.0.2.1");
	assert_string_equal(transport_to("mx.dest.test"), "own");
}

static void a_reload_brings_another(void **state)
{
	(void)state;
	begin(OWN);
	send_as(1, "x@a.test", "x@dest.test");
	reload("transport own { } flow a.test { }");
	send_as(2, "x@a.test", "x@next.test");
	assert_string_equal(transport_to("mx-next.test"), "smtp");
}

static void a_transport_that_is_none_is_an_error(void **state)
{
	(void)state;
	struct buf errors = {0};
	char name[] = "/tmp/flow-conf-XXXXXX";
	int fd = mkstemp(name);
	assert_true(fd >= 0);
	dprintf(fd, "transport own { }\nflow a.test {\n  transport = owm\n}\n");
	close(fd);
	assert_null(conf_read_with(name, 0, &errors));
	assert_non_null(
		strstr(buf_cstr(&errors), ":3: flow \"a.test\": there is no transport \"owm\""));
	unlink(name);
	buf_fini(&errors);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(deliveries_of_a_flow_are_so_many_in_a_time_at_all_sites),
		TEST(no_connection_is_opened_for_what_is_not_due),
		TEST(others_go_on_at_the_same_site),
		TEST(it_says_so_and_until_when),
		TEST(while_it_waits_nothing_wakes_up),
		TEST(what_its_connection_could_not_take_is_not_counted),
		TEST(who_sends_one_at_a_time_keeps_to_it),
		TEST(what_is_taken_from_mail_that_waits_gives_nothing_back_to_its_flow),
		TEST(a_reload_changes_the_rate_at_once),
		TEST(a_high_rate_is_kept_in_the_mean),
		TEST(whatever_happens_nothing_is_lost_of_the_order),
		TEST(a_higher_priority_goes_first_and_age_decides_among_equals),
		TEST(a_priority_is_nothing_to_another_flow),
		TEST(nobody_slips_past_a_higher_priority),
		TEST(mail_that_waits_for_its_turn_ends_in_time),
		TEST(what_is_past_it_is_not_tried),
		TEST(what_is_under_way_is_not_cut_off),
		TEST(what_was_deleted_does_not_come_back_at_its_end),
		TEST(a_reload_gives_and_takes_lifetimes),
		TEST(its_transport_carries_its_mail),
		TEST(a_route_s_transport_goes_before_it),
		TEST(a_route_s_relay_stays),
		TEST(a_provider_does_not_change_it),
		TEST(a_reload_brings_another),
		TEST(a_transport_that_is_none_is_an_error),
	};
	return RUN(tests);
}
