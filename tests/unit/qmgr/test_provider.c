/* SPDX-License-Identifier: ISC */
/* What holds for all destinations of a provider together. */
#include "tests/unit/qmgr/world.h"

#include "base/address.h"
#include "qmgr/dest/destdb_text.h"
#include "qmgr/dest/admission.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/suspend.h"

enum { DOMAINS = 6 };

static const char limited[] = "provider big { mx = { .big.test } connection_limit = 3 }";

/* Domain i has a host of its own, which is the provider's. */
static void send_to(int i, uint64_t id)
{
	char to[64], domain[32], host[64];
	snprintf(domain, sizeof domain, "d%d.test", i);
	snprintf(to, sizeof to, "x@%s", domain);
	snprintf(host, sizeof host, "10 mx%d.big.test 192.0.2.%d", i, i + 1);
	int asked = questions.n;
	send_mail(id, to);
	if (questions.n > asked)
		answer(domain, host);
}

static void send_to_all(void)
{
	for (int i = 0; i < DOMAINS; i++)
		send_to(i, (uint64_t)i + 1);
}

static const struct site *site_of(int i)
{
	char name[32];
	snprintf(name, sizeof name, "mx%d.big.test", i);
	return site_named(name);
}

static int count_held(enum constraint c)
{
	int n = 0;
	for (int i = 0; i < DOMAINS; i++)
		n += admission_of_first(site_of(i)).constraint == c;
	return n;
}

static void its_destinations_share_so_many_connections(void **state)
{
	(void)state;
	begin(limited);
	send_to_all();
	assert_int_equal(opened.n, 3);
	assert_int_equal(count_held(CONSTRAINT_PROVIDER_CONNECTION_LIMIT), DOMAINS - 3);
	assert_int_equal(admission_of_first(site_of(DOMAINS - 1)).limit, 3);
	destdb_check(&q->db);
}

static void who_is_of_no_provider_is_not_held(void **state)
{
	(void)state;
	begin(limited);
	send_to_all();
	send_mail(100, "x@else.test");
	answer("else.test", "10 mx.else.test 192.0.2.99");
	assert_int_equal(opened.n, 4);
	assert_int_equal(opened_to("mx.else.test"), 1);
}

static void a_connection_that_ends_makes_room_for_the_first_in_line(void **state)
{
	(void)state;
	begin(limited);
	send_to_all();
	for (int i = 3; i < DOMAINS; i++) {
		lose(open_at(0), "cut off"); /* of one that is to be tried again later */
		assert_int_equal(opened.n, 3);
		char host[32];
		snprintf(host, sizeof host, "mx%d.big.test", i);
		assert_int_equal(opened_to(host), 1);
	}
	destdb_check(&q->db);
}

static void an_idle_connection_makes_room(void **state)
{
	(void)state;
	begin(limited);
	send_to_all();
	struct connection_open *o = open_at(0);
	ready(o, 1);
	done(given_at(0), VERDICT_SENT);
	assert_true(was_told_to_end(o));
	assert_int_equal(opened.n, 3);
	close_orderly(o);
	assert_int_equal(opened.n, 3);
	assert_int_equal(opened_to("mx3.big.test"), 1);
	destdb_check(&q->db);
}

/* The other looks first, and would end it; its own, which is opened then, would be ended by the first, and so on. */
static void one_that_has_just_become_ready_is_used_first(void **state)
{
	(void)state;
	begin("provider big { mx = { .big.test } connection_limit = 1 }");
	send_to(0, 1);
	send_to(1, 2);
	assert_int_equal(opened.n, 1);
	struct connection_open *o = open_to("mx0.big.test");
	post_arrival(mail(3, "sender@here.test", "y@d1.test"));
	post_ready(o, 1);
	settle();
	assert_false(was_told_to_end(o));
	done(delivery_of_mail(1), VERDICT_SENT);
	assert_true(was_told_to_end(o)); /* it has had its use */
	close_orderly(o);
	ready(open_to("mx1.big.test"), 1);
	done(delivery_of_mail(2), VERDICT_SENT);
	destdb_check(&q->db);
}

/* A domain that calls the provider's host by a name of its own is not the provider's. */
static const char own_name[] = "10 mx.own.test 192.0.2.1";

static void send_to_own_name(uint64_t id)
{
	send_mail(id, "x@own.test");
	if (questions.n > 0)
		answer("own.test", own_name);
}

static void a_connection_that_is_lent_to_it_counts(void **state)
{
	(void)state;
	begin("provider big { mx = { .big.test } connection_limit = 1 }");
	send_to_own_name(1);
	ready(open_at(0), 1);
	send_to(1, 2);
	ready(open_at(1), 1);
	done(delivery_of_mail(1), VERDICT_SENT); /* idle, and to the host of the first */
	send_to(0, 3);
	assert_int_equal(given.n, 1);
	assert_int_equal(site_of(0)->connections, 0);
	assert_int_equal(admission_of_first(site_of(0)).constraint,
			 CONSTRAINT_PROVIDER_CONNECTION_LIMIT);
	done(delivery_of_mail(2), VERDICT_SENT);
	close_orderly(open_to("mx1.big.test"));
	assert_int_equal(delivery_of_mail(3)->connection, open_to("mx.own.test")->connection);
	destdb_check(&q->db);
}

/* Younger mail comes for the first as it goes; depth: of the pipeline. */
static void serve_first_until_second_is(int depth)
{
	begin("provider big { mx = { .big.test } connection_limit = 1 }");
	send_to(0, 1);
	struct connection_open *o = open_at(0);
	ready(o, depth);
	send_mail(2, "y@d0.test");
	send_to(1, 3);
	int carried = 0;
	for (uint64_t id = 4; !was_told_to_end(o) && carried < 30; id += 2) {
		send_mail(id, "y@d0.test");
		send_mail(id + 1, "y@d0.test");
		done(given_at(0), VERDICT_SENT);
		carried++;
	}
	assert_in_range(carried + given.n, 10, 10 + depth);
	while (given.n > 0)
		done(given_at(0), VERDICT_SENT);
	close_orderly(o);
	assert_int_equal(opened.n, 1);
	ready(open_to("mx1.big.test"), depth);
	done(delivery_of_mail(3), VERDICT_SENT);
	destdb_check(&q->db);
}

static void one_that_is_always_busy_makes_room_after_its_turn(void **state)
{
	(void)state;
	serve_first_until_second_is(1);
}

static void so_does_one_with_a_pipeline(void **state)
{
	(void)state;
	serve_first_until_second_is(16);
}

static void it_is_kept_while_its_own_mail_is_older(void **state)
{
	(void)state;
	begin("provider big { mx = { .big.test } connection_limit = 1 }");
	send_to(0, 1);
	struct connection_open *o = open_at(0);
	ready(o, 1);
	for (uint64_t id = 2; id < 30; id++)
		send_mail(id, "y@d0.test");
	send_to(1, 30);
	for (uint64_t id = 31; id < 40; id++)
		send_mail(id, "y@d0.test");
	int carried = 0;
	while (!was_told_to_end(o) && carried < 50) {
		done(given_at(0), VERDICT_SENT);
		carried++;
	}
	assert_in_range(carried, 28, 29);
}

/* Its first destination has a connection with mail, by one transport; the second is for another. */
static struct connection_open *begin_with_two_transports(void)
{
	begin("provider big { mx = { .big.test } connection_limit = 1 }  transport other { }"
	      "route d1.test { transport = other }");
	send_to(0, 1);
	struct connection_open *o = open_at(0);
	ready(o, 1);
	return o;
}

static void goes_to_second(struct connection_open *o)
{
	assert_true(was_told_to_end(o));
	close_orderly(o);
	assert_int_equal(opened_to("mx1.big.test"), 1);
	destdb_check(&q->db);
}

/* A provider's connections are those of all transports: none keeps what it does not use. */
static void an_idle_connection_of_another_transport_makes_room(void **state)
{
	(void)state;
	struct connection_open *o = begin_with_two_transports();
	done(given_at(0), VERDICT_SENT);
	assert_false(was_told_to_end(o));
	send_to(1, 2);
	goes_to_second(o);
}

/* The mail of the other transport was there first. */
static void so_does_one_that_becomes_idle_while_another_transport_waits(void **state)
{
	(void)state;
	struct connection_open *o = begin_with_two_transports();
	send_to(1, 2);
	assert_int_equal(opened.n, 1);
	done(given_at(0), VERDICT_SENT);
	goes_to_second(o);
}

static void a_limit_that_is_lifted_lets_all_go_on(void **state)
{
	(void)state;
	begin(limited);
	send_to_all();
	reload("provider big { mx = { .big.test } connection_limit = 5 }");
	settle();
	assert_int_equal(opened.n, 5);
	reload("");
	settle();
	assert_int_equal(opened.n, DOMAINS);
	assert_null(site_of(0)->provider);
	destdb_check(&q->db);
}

static void hosts_of_several_are_nobodys(void **state)
{
	(void)state;
	begin(limited);
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.big.test 192.0.2.1, 10 mx1.else.test 192.0.2.2");
	send_mail(2, "x@b.test");
	answer("b.test", "10 mx2.big.test 192.0.2.3, 20 backup.else.test 192.0.2.4");
	assert_null(site_named("mx1.big.test,mx1.else.test")->provider);
	assert_string_equal(site_named("mx2.big.test;backup.else.test")->provider->name, "big");
}

/* All have a connection that is ready, and one delivery each that waits. */
static void make_all_ready(void)
{
	for (int i = 0; i < opened.n; i++)
		ready(open_at(i), 1);
}

static void its_destinations_share_a_rate(void **state)
{
	(void)state;
	begin("provider big { mx = { .big.test } rate = \"2/s\" }");
	send_to_all();
	make_all_ready();
	assert_int_equal(given.n, 1);
	assert_int_equal(count_held(CONSTRAINT_PROVIDER_RATE), DOMAINS - 1);
	for (int n = 2; n <= DOMAINS; n++) {
		pass_time(499);
		assert_int_equal(given.n, n - 1);
		pass_time(1);
		assert_int_equal(given.n, n);
	}
	destdb_check(&q->db);
}

static void it_is_forgotten_with_its_last_destination(void **state)
{
	(void)state;
	begin(limited);
	send_to(0, 1);
	assert_int_equal(HASH_COUNT(q->db.providers), 1);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
	close_orderly(open_at(0));
	pass_time(3600 * 1000);
	settle();
	assert_int_equal(HASH_COUNT(q->db.providers), 0);
}

/* --- the pace that all its destinations share */

enum { SITES = 20, MAIL = 400, RATE = 20, ROOM = 20 };

static const char paced[] = "provider big { mx = { .big.test } }";

static void mail_to_site(int i, uint64_t id)
{
	char from[32], to[64], domain[32], host[64];
	snprintf(from, sizeof from, "f%d@own.test", (int)id);
	snprintf(domain, sizeof domain, "d%d.test", i);
	snprintf(to, sizeof to, "t%d@d%d.test", (int)id, i);
	snprintf(host, sizeof host, "10 mx%d.big.test 192.0.2.%d", i, i + 1);
	int asked = questions.n;
	arrive(mail(id, from, to));
	if (questions.n > asked)
		answer(domain, host);
}

static void slow_down(struct delivery *d)
{
	d->rcpt[0].verdict =
		verdict_answering(VERDICT_AT_END, VERDICT_DEFERRED, 421, "4.7.28",
				  "mx.test[192.0.2.1]:25", "rate limited, try again later");
	back(d);
}

/* What the spool and the name server are for here. */
static void see_to_others(void)
{
	while (told.n > 0) {
		struct note *note = take(&told, 0);
		if (note->type == SPOOL_UNPARK)
			asked_back((struct spool_unpark *)note, 0, 0);
		else
			forget(note);
	}
}

static struct box held; /* connections that are ready, and stay so */

/* All of it is one receiver's, which has one bucket. */
static void serve_from_bucket(int *taken, int *refused, int64_t until_ms)
{
	double tokens = ROOM;
	for (*taken = *refused = 0; *taken < MAIL && clock_ms < until_ms; pass_time(10)) {
		tokens += RATE / 100.0;
		tokens = tokens > ROOM ? ROOM : tokens;
		while (opened.n > 0) {
			ready(open_at(0), 4);
			put(&held, take(&opened, 0));
		}
		for (int n = given.n; n > 0 && given.n > 0; n--) {
			if (tokens < 1) {
				slow_down(given_at(0));
				++*refused;
			} else {
				done(given_at(0), VERDICT_SENT);
				tokens -= 1;
				++*taken;
			}
		}
		see_to_others();
	}
	while (held.n > 0)
		put(&opened, take(&held, 0));
}

static void send_to_bucket(int *taken, int *refused)
{
	for (int i = 0; i < MAIL; i++)
		mail_to_site(i % SITES, (uint64_t)i + 1);
	serve_from_bucket(taken, refused, clock_ms + 60000);
}

/* Each has all connections of its first window when the first refusal comes: what is under way then comes home. */
enum { FIRST_BURST = SITES * 5 - ROOM };

static void its_destinations_learn_one_pace(void **state)
{
	(void)state;
	int taken, refused;
	begin(paced);
	int64_t from_ms = clock_ms;
	send_to_bucket(&taken, &refused);
	assert_int_equal(taken, MAIL);
	assert_in_range(refused, FIRST_BURST, FIRST_BURST + MAIL / 10);
	assert_in_range(clock_ms - from_ms, 0, (MAIL - ROOM) * 1000 / RATE * 135 / 100);
}

static void each_for_itself_they_are_refused_on_and_on(void **state)
{
	(void)state;
	int taken, refused;
	begin("");
	send_to_bucket(&taken, &refused);
	assert_in_range(refused, FIRST_BURST + MAIL / 5, 100 * MAIL);
}

static void whom_one_is_told_the_others_have_heard(void **state)
{
	(void)state;
	begin(paced);
	for (int i = 0; i < 3; i++)
		mail_to_site(i, (uint64_t)i + 1);
	ready(open_to("mx0.big.test"), 1);
	slow_down(delivery_of_mail(1));
	ready(open_to("mx1.big.test"), 1);
	ready(open_to("mx2.big.test"), 1);
	assert_int_equal(given.n, 0);
	for (int i = 0; i < 3; i++) {
		struct admission l = admission_of_first(site_of(i));
		assert_int_equal(l.constraint, CONSTRAINT_PACE);
		assert_string_equal(site_state_name(site_of(i)), "paced");
		assert_non_null(site_of(i)->pacing->why);
	}
	pass_time(874);
	assert_int_equal(given.n, 0);
	pass_time(251);
	assert_int_equal(given.n, 1); /* one asks for all */
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 0);
	pass_time(10000);
	assert_int_equal(given.n, 1); /* and the next at the pace */
	destdb_check(&q->db);
}

static void a_transport_without_a_pace_has_none_of_it(void **state)
{
	(void)state;
	begin("provider big { mx = { .big.test } }  transport deaf { pace = false }"
	      "route d1.test { transport = deaf }");
	mail_to_site(0, 1);
	mail_to_site(1, 2);
	ready(open_to("mx0.big.test"), 1);
	slow_down(delivery_of_mail(1));
	ready(open_to("mx1.big.test"), 1);
	assert_int_equal(given.n, 1);
	assert_int_equal(given_at(0)->id, 2);
	slow_down(given_at(0));
	struct envelope *e = is_kept(2);
	envelope_free(&e);
	destdb_check(&q->db);
}

static void its_pace_outlives_it_and_the_process(void **state)
{
	(void)state;
	struct buf text;
	begin(paced);
	mail_to_site(0, 1);
	ready(open_at(0), 1);
	slow_down(given_at(0));
	buf_init(&text);
	destdb_write(&q->db, &text);
	assert_non_null(strstr(buf_cstr(&text), "provider\tkey=big\t"));
	assert_non_null(strstr(buf_cstr(&text), "\tpace=1000\t"));
	finish(NULL);
	begin(paced);
	destdb_read(&q->db, buf_cstr(&text));
	mail_to_site(1, 2); /* another of its destinations */
	assert_true(site_pace_rate(site_of(1)) > 0);
	assert_string_equal(site_of(1)->pacing->why->text, "rate limited, try again later");
	buf_fini(&text);
}

static void what_is_forgotten_of_it_the_next_start_does_not_know(void **state)
{
	(void)state;
	begin(paced);
	destdb_read(&q->db,
		    "provider\tkey=big\tapart=1\tpace=1000\tsince=1\trefused=1700000000000\n");
	assert_non_null(q->db.remembered);
	assert_false(q->db.learnt);
	provider_forget_pace(&q->db, "big");
	assert_null(q->db.remembered);
	assert_true(q->db.learnt);
}

static void a_reset_of_one_forgets_the_pace_of_all(void **state)
{
	(void)state;
	begin(paced);
	mail_to_site(0, 1);
	mail_to_site(1, 2);
	ready(open_to("mx0.big.test"), 1);
	ready(open_to("mx1.big.test"), 1);
	slow_down(delivery_of_mail(1));
	done(delivery_of_mail(2), VERDICT_SENT);
	assert_true(site_pace_rate(site_of(1)) > 0);
	site_reset((struct site *)site_of(1), false);
	qmgr_thread_settle(q);
	assert_true(site_pace_rate(site_of(0)) <= 0);
	assert_int_equal(given.n, 1); /* at once */
	see_to_others();
}

static void a_section_that_goes_leaves_each_its_own_pace(void **state)
{
	(void)state;
	begin("");
	mail_to_site(0, 1);
	mail_to_site(1, 2);
	ready(open_to("mx0.big.test"), 1);
	slow_down(delivery_of_mail(1));
	assert_true(site_pace_rate(site_of(1)) <= 0);
	reload(paced);
	assert_true(site_pace_rate(site_of(1)) > 0); /* what one of them knew */
	destdb_check(&q->db);
	pass_time(1000);
	ready(open_to("mx1.big.test"), 1);
	reload("");
	assert_true(site_pace_rate(site_of(0)) <= 0);
	settle();
	assert_int_equal(given.n, 2);
	destdb_check(&q->db);
}

/* Each would open one, to be told the same. */
static void few_connections_are_opened_while_all_is_refused(void **state)
{
	(void)state;
	names_stay = true;
	begin(paced);
	mail_to_site(0, 1);
	ready(open_at(0), 1);
	slow_down(given_at(0));
	close_orderly(open_at(0));
	for (int i = 1; i < SITES; i++)
		mail_to_site(i, (uint64_t)i + 1);
	pass_about(1000);
	assert_int_equal(opened.n, 1);
	for (int64_t wait_ms = 2000; wait_ms < 64000; wait_ms *= 2) {
		ready(open_at(0), 1);
		assert_int_equal(given.n, 1);
		struct connection_open *o = open_at(0);
		slow_down(given_at(0));
		close_orderly(o);
		see_to_others();
		pass_about(wait_ms);
		see_to_others();
		assert_in_range(opened.n, 1, 1);
	}
	destdb_check(&q->db);
}

static void a_suspended_provider_gets_nothing(void **state)
{
	(void)state;
	begin(paced);
	mail_to_site(0, 1);
	suspend_begin(&q->db, "big", SUSPEND_PROVIDER, clock_wall_ms() + 60000);
	qmgr_thread_settle(q);
	struct envelope *e = is_parked(1);
	envelope_free(&e);
	see_to_others();
	close_orderly(open_at(0));
	mail_to_site(1, 2); /* one that was not known */
	e = is_parked(2);
	envelope_free(&e);
	see_to_others();
	send_mail(3, "x@else.test");
	answer("else.test", "10 mx.else.test 192.0.2.99");
	assert_int_equal(opened.n, 1);
	assert_false(suspend_end(&q->db, "big")); /* a name is a site's, a host's or a domain's */
	pass_time(60000);
	assert_null(q->db.suspended);
	assert_false(site_of(0)->suspended || site_of(1)->suspended);
	see_to_others();
}

static const char carried[] =
	"transport slow { port = 2525 }  transport other { }"
	"provider big { mx = { .big.test } transport = slow }"
	"route named.test { transport = other }  route smtp.test { transport = smtp }"
	"route relayed.test { relay = { mx9.big.test } }";

static const char *carrier_of(const char *site)
{
	return site_named(site)->queue.transport->title;
}

static void it_chooses_the_transport_of_its_mail(void **state)
{
	(void)state;
	begin(carried);
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	assert_int_equal(questions.n, 1); /* once more, with the port of that */
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	assert_int_equal(questions.n, 0);
	assert_int_equal(HASH_COUNT(q->db.sites), 1);
	assert_string_equal(carrier_of("mx1.big.test"), "slow");
	assert_int_equal(address_port(&open_at(0)->address), 2525);
	send_mail(2, "y@a.test");
	assert_int_equal(questions.n, 0);
	ready(open_at(0), 2);
	done(delivery_of_mail(1), VERDICT_SENT);
	done(delivery_of_mail(2), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
	is_delivered(2, 1, VERDICT_SENT);
	is_released(2);
	destdb_check(&q->db);
}

static void what_a_route_names_goes_before_it(void **state)
{
	(void)state;
	begin(carried);
	send_mail(1, "x@named.test");
	answer("named.test", "10 mx1.big.test 192.0.2.1");
	assert_string_equal(carrier_of("mx1.big.test"), "other");
	send_mail(2, "x@smtp.test");
	answer("smtp.test", "10 mx2.big.test 192.0.2.2");
	assert_string_equal(carrier_of("mx2.big.test"), "smtp");
	send_mail(3, "x@relayed.test");
	answer("mx9.big.test", "0 mx9.big.test 192.0.2.3");
	assert_string_equal(carrier_of("mx9.big.test"), "smtp");
	assert_int_equal(questions.n, 0);
}

static void mail_of_nobodys_hosts_stays_where_it_is(void **state)
{
	(void)state;
	begin(carried);
	send_mail(1, "x@b.test");
	answer("b.test", "10 mx1.else.test 192.0.2.1");
	assert_string_equal(carrier_of("mx1.else.test"), "smtp");
	send_mail(2, "x@c.test");
	answer("c.test", "10 mx2.big.test 192.0.2.2, 10 mx2.else.test 192.0.2.3");
	assert_string_equal(carrier_of("mx2.big.test,mx2.else.test"), "smtp");
	assert_int_equal(questions.n, 0);
}

/* The second answer would send it back: it was asked for on behalf of the transport that was chosen. */
static void providers_do_not_pass_it_to_and_fro(void **state)
{
	(void)state;
	begin("transport slow { }  provider big { mx = { .big.test } transport = slow }"
	      "provider small { mx = { .small.test } transport = smtp }");
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	answer("a.test", "10 mx1.small.test 192.0.2.2");
	assert_int_equal(questions.n, 0);
	assert_string_equal(carrier_of("mx1.small.test"), "slow");
}

static void each_recipient_goes_its_own_way(void **state)
{
	(void)state;
	begin(carried);
	struct envelope *e = mail(1, "", "x@a.test");
	envelope_add(e, "x@b.test");
	envelope_add(e, "y@a.test");
	arrive(e);
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	answer("b.test", "10 mx1.else.test 192.0.2.2");
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	ready(open_to("mx1.big.test"), 1);
	ready(open_to("mx1.else.test"), 1);
	assert_int_equal(given.n, 2);
	assert_int_equal(given_at(0)->nrcpt + given_at(1)->nrcpt, 3);
	cancel(1);
}

static void no_answer_for_the_transport_of_it_is_told(void **state)
{
	(void)state;
	begin(carried);
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	no_answer("a.test", VERDICT_DEFERRED, "4.4.3");
	struct envelope *e = is_kept(1);
	assert_string_equal(e->rcpt[0].last->dsn, "4.4.3");
	envelope_free(&e);
	assert_int_equal(HASH_COUNT(q->db.sites), 0);
}

static void its_transport_may_go_with_a_reload(void **state)
{
	(void)state;
	begin(carried);
	send_mail(1, "x@a.test");
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	reload(""); /* while the second answer is to come */
	answer("a.test", "10 mx1.big.test 192.0.2.1");
	assert_string_equal(carrier_of("mx1.big.test"), "slow");
	send_mail(2, "x@b.test");
	answer("b.test", "10 mx2.big.test 192.0.2.2");
	assert_string_equal(carrier_of("mx2.big.test"), "smtp");
	destdb_check(&q->db);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(its_destinations_share_so_many_connections),
		TEST(who_is_of_no_provider_is_not_held),
		TEST(a_connection_that_ends_makes_room_for_the_first_in_line),
		TEST(an_idle_connection_makes_room),
		TEST(one_that_has_just_become_ready_is_used_first),
		TEST(a_connection_that_is_lent_to_it_counts),
		TEST(one_that_is_always_busy_makes_room_after_its_turn),
		TEST(so_does_one_with_a_pipeline),
		TEST(it_is_kept_while_its_own_mail_is_older),
		TEST(an_idle_connection_of_another_transport_makes_room),
		TEST(so_does_one_that_becomes_idle_while_another_transport_waits),
		TEST(a_limit_that_is_lifted_lets_all_go_on),
		TEST(hosts_of_several_are_nobodys),
		TEST(its_destinations_share_a_rate),
		TEST(its_destinations_learn_one_pace),
		TEST(each_for_itself_they_are_refused_on_and_on),
		TEST(whom_one_is_told_the_others_have_heard),
		TEST(a_transport_without_a_pace_has_none_of_it),
		TEST(its_pace_outlives_it_and_the_process),
		TEST(what_is_forgotten_of_it_the_next_start_does_not_know),
		TEST(a_reset_of_one_forgets_the_pace_of_all),
		TEST(a_section_that_goes_leaves_each_its_own_pace),
		TEST(a_suspended_provider_gets_nothing),
		TEST(few_connections_are_opened_while_all_is_refused),
		TEST(it_chooses_the_transport_of_its_mail),
		TEST(what_a_route_names_goes_before_it),
		TEST(mail_of_nobodys_hosts_stays_where_it_is),
		TEST(providers_do_not_pass_it_to_and_fro),
		TEST(each_recipient_goes_its_own_way),
		TEST(no_answer_for_the_transport_of_it_is_told),
		TEST(its_transport_may_go_with_a_reload),
		TEST(it_is_forgotten_with_its_last_destination),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
