/* SPDX-License-Identifier: ISC */
/* A connection belongs to its host, and is lent to any site that has it. */
#include "tests/unit/qmgr/world.h"

#include "qmgr/dest/conn.h"
#include "qmgr/dest/suspend.h"

/* Two domains with mail hosts of their own names, on one address. */
static const char of_a[] = "10 mx.a.test 192.0.2.1", of_b[] = "10 mx.b.test 192.0.2.1";

static void send_to(uint64_t id, const char *domain, const char *hosts)
{
	char to[64];
	snprintf(to, sizeof to, "x@%s", domain);
	send_mail(id, to);
	if (questions.n > 0)
		answer(domain, hosts);
}

/* One connection, opened for a.test, that has carried a message and is idle. */
static void begin_idle(const char *text)
{
	begin(text);
	send_to(1, "a.test", of_a);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	is_delivered(1, 1, VERDICT_SENT);
	is_released(1);
}

static void two_sites_with_names_of_their_own_share_the_connections_to_one_address(void **state)
{
	(void)state;
	begin_idle("");
	send_to(2, "b.test", of_b);
	assert_int_equal(opened.n, 1);
	assert_int_equal(given_at(0)->connection, open_at(0)->connection);
	assert_string_equal(q->db.sites->name, "mx.a.test");
	assert_int_equal(site_named("mx.a.test")->connections, 0);
	assert_int_equal(site_named("mx.b.test")->connections, 1);
	assert_int_equal(site_named("mx.b.test")->busy, 1);
	assert_int_equal(HASH_COUNT(q->db.hosts), 1);
	assert_int_equal(HASH_COUNT(q->db.sites), 2);
}

static void the_name_for_sni_and_certificates_is_that_of_the_site_it_is_opened_for(void **state)
{
	(void)state;
	begin_idle("");
	assert_string_equal(open_at(0)->host, "mx.a.test");
	send_to(2, "b.test", of_b);
	send_to(3, "b.test", of_b); /* the other is in use */
	assert_int_equal(opened.n, 2);
	assert_string_equal(open_at(0)->host, "mx.a.test");
	assert_string_equal(open_at(1)->host, "mx.b.test");
}

static void a_verdict_calls_the_host_as_the_site_does_whose_mail_it_is(void **state)
{
	(void)state;
	begin_idle("");
	send_to(2, "b.test", of_b);
	struct delivery *d = given_at(0);
	d->rcpt[0].verdict = verdict_new(VERDICT_DEFERRED, 450, "4.2.0", "mx.a.test[192.0.2.1]:25",
					 "mx.a.test[192.0.2.1]:25 said: later, by mx.a.test");
	back(d);
	struct envelope *e = is_kept(2);
	assert_string_equal(e->rcpt[0].last->host, "mx.b.test[192.0.2.1]:25");
	assert_string_equal(e->rcpt[0].last->text,
			    "mx.b.test[192.0.2.1]:25 said: later, by mx.a.test");
	assert_int_equal(e->rcpt[0].last->code, 450);
	envelope_free(&e);
}

static void what_failed_in_tls_under_one_name_is_tried_under_another(void **state)
{
	(void)state;
	begin("");
	send_to(1, "a.test", of_a);
	struct connection_ready *r = mem_zalloc(sizeof *r);
	r->note.type = CONNECTION_READY;
	r->owner = open_at(0)->owner;
	r->connection = open_at(0)->connection;
	r->depth = 1;
	r->tls_broken = true;
	post(&r->note);
	settle();
	send_to(2, "b.test", of_b);
	send_to(3, "a.test", of_a);
	assert_int_equal(opened.n, 3);
	assert_false(open_to("mx.b.test")->plain);
	assert_true(open_at(2)->plain);
	assert_string_equal(open_at(2)->host, "mx.a.test");
}

static void a_host_that_failed_under_one_name_is_out_for_all_and_told_by_their_own(void **state)
{
	(void)state;
	begin("transport smtp { site_patience = 500ms }");
	send_to(1, "a.test", of_a);
	struct connection_open *o = open_at(0);
	take(&opened, 0);
	o->note.type = CONNECTION_CLOSED;
	o->why = verdict_new(VERDICT_DEFERRED, 0, "4.4.1", "mx.a.test[192.0.2.1]:25",
			     "mx.a.test[192.0.2.1]:25 refused");
	post(&o->note);
	settle();
	send_to(2, "b.test", of_b);
	assert_int_equal(opened.n, 0);
	pass_time(500);
	struct envelope *a = is_parked(1), *b = is_parked(2);
	assert_string_equal(a->rcpt[0].last->text, "mx.a.test[192.0.2.1]:25 refused");
	assert_string_equal(b->rcpt[0].last->text, "mx.b.test[192.0.2.1]:25 refused");
	assert_string_equal(b->rcpt[0].last->host, "mx.b.test[192.0.2.1]:25");
	envelope_free(&a);
	envelope_free(&b);
}

static void one_success_brings_it_back_for_all(void **state)
{
	(void)state;
	begin("");
	send_to(1, "a.test", of_a);
	lose(open_at(0), "refused");
	send_to(2, "b.test", of_b);
	pass_time(1000);
	assert_int_equal(opened.n, 1); /* one probe, for both */
	ready(open_at(0), 1);
	assert_int_equal(site_named("mx.a.test")->health, SITE_ALIVE);
	assert_int_equal(site_named("mx.b.test")->health, SITE_ALIVE);
	assert_int_equal(given.n, 1);
	assert_int_equal(opened.n, 2);
}

static void what_is_busy_is_not_lent(void **state)
{
	(void)state;
	begin("");
	send_to(1, "a.test", of_a);
	ready(open_at(0), 16);
	send_to(2, "b.test", of_b);
	assert_int_equal(opened.n, 2);
	assert_int_equal(given.n, 1);
}

static void what_its_own_site_has_mail_for_is_not_lent(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 1 }");
	send_to(1, "a.test", of_a);
	for (uint64_t id = 2; id < 5; id++)
		send_to(id, "a.test", of_a);
	ready(open_at(0), 1);
	send_to(9, "b.test", of_b);
	for (uint64_t id = 1; id < 5; id++) {
		assert_int_equal(given_at(0)->id, id);
		done(given_at(0), VERDICT_SENT);
	}
	assert_int_equal(given_at(0)->id, 9);
	assert_int_equal(opened.n, 1);
}

static void after_ten_messages_it_yields_to_a_site_that_can_have_no_other(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 1 }");
	for (uint64_t id = 1; id <= 40; id++)
		send_to(id, "a.test", of_a);
	ready(open_at(0), 1);
	send_to(50, "b.test", of_b);
	for (uint64_t id = 1; id <= 10; id++) {
		assert_int_equal(given_at(0)->id, id);
		done(given_at(0), VERDICT_SENT);
	}
	assert_int_equal(given_at(0)->id, 50);
	done(given_at(0), VERDICT_SENT);
	for (uint64_t id = 11; id <= 40; id++) { /* nobody else waits */
		assert_int_equal(given_at(0)->id, id);
		done(given_at(0), VERDICT_SENT);
	}
	assert_int_equal(opened.n, 1);
}

static void two_that_have_mail_take_turns_of_ten(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 1 }");
	for (uint64_t id = 1; id <= 200; id++)
		send_to(id, id <= 100 ? "a.test" : "b.test", id <= 100 ? of_a : of_b);
	ready(open_at(0), 1);
	for (int i = 0; i < 200; i++) {
		bool turn_of_b = i / 10 % 2 == 1;
		assert_int_equal(given_at(0)->id > 100, turn_of_b);
		done(given_at(0), VERDICT_SENT);
	}
	assert_int_equal(given.n, 0);
	assert_int_equal(opened.n, 1);
}

static void post_sent(uint64_t id)
{
	struct delivery *d = delivery_of_mail(id);
	set_verdict(d, 0, VERDICT_SENT);
	post_back(d);
}

/* Two have had their turn, and yield to one that waits for both, which takes one of them. */
static void who_yielded_in_vain_goes_on(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 1 }");
	for (uint64_t id = 1; id <= 20; id++) {
		send_to(id, "a.test", "10 one.test 192.0.2.1");
		send_to(100 + id, "c.test", "10 two.test 192.0.2.2");
	}
	ready(open_at(0), 1);
	ready(open_at(1), 1);
	send_to(50, "b.test", "10 one.test 192.0.2.1, 10 two.test 192.0.2.2");
	for (uint64_t id = 1; id < 10; id++) {
		done(delivery_of_mail(id), VERDICT_SENT);
		done(delivery_of_mail(100 + id), VERDICT_SENT);
	}
	post_sent(10);
	post_sent(110);
	settle();
	assert_int_equal(opened.n, 2);
	assert_int_equal(given.n, 2);
	assert_non_null(delivery_of_mail(50));
}

/* Those that are there serve, though another node had none there; the other host that it may have is full. */
static void one_to_a_host_that_is_out_is_lent(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 2 }");
	send_to(1, "c.test", "10 two.test 192.0.2.2");
	send_to(2, "c.test", "10 two.test 192.0.2.2");
	ready(open_at(0), 1);
	ready(open_at(1), 1);
	send_to(3, "a.test", "10 one.test 192.0.2.1");
	ready(open_at(2), 1);
	struct host heard = {.failures = 1, .retry_ms = clock_ms + 60000};
	host_heard_out(site_named("one.test")->hosts[0].host, &heard, "n2", clock_ms);
	send_to(4, "b.test", "10 one.test 192.0.2.1, 20 two.test 192.0.2.2");
	assert_int_equal(opened.n, 3);
	assert_int_equal(given.n, 3);
	done(delivery_of_mail(3), VERDICT_DEFERRED);
	assert_int_equal(opened.n, 3);
	assert_string_equal(open_at(2)->host, "one.test");
	assert_int_equal(delivery_of_mail(4)->connection, open_at(2)->connection);
}

/* The address serves others under their own names. */
static void what_is_suspended_by_its_name_borrows_nothing_there(void **state)
{
	(void)state;
	begin_idle("");
	suspend_begin(&q->db, "mx.b.test", SUSPEND_HOST, 0);
	send_to(2, "b.test", "10 mx.b.test 192.0.2.1, 20 back.test 192.0.2.2");
	assert_int_equal(given.n, 0);
	assert_int_equal(opened_to("back.test"), 1);
}

static void it_is_not_lent_beyond_the_window_of_who_wants_it(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 1 "
	      "initial_destination_concurrency = 1 }");
	send_to(1, "b.test", of_b);
	send_to(2, "a.test", of_a);
	ready(open_at(0), 1);
	ready(open_at(1), 1);
	done(delivery_of_mail(2), VERDICT_SENT); /* idle now */
	send_to(3, "b.test", of_b);
	assert_int_equal(given.n, 1);
	assert_int_equal(site_named("mx.b.test")->connections, 1);
}

/* A connection to the host has ended, and who was told of that has another host in the same moment. */
static void who_has_gone_elsewhere_leaves_the_room_to_the_next(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 2 connection_max_age = 0 }");
	send_to(1, "a.test", of_a);
	send_to(2, "a.test", of_a);
	ready(open_at(0), 1);
	ready(open_at(1), 1);
	send_to(3, "b.test", of_b);
	send_to(4, "c.test", "10 mx.c.test 192.0.2.1");
	assert_int_equal(opened.n, 2);
	pass_time(6000); /* names are asked for again */
	post_arrival(mail(5, "sender@here.test", "y@b.test"));
	settle();
	assert_int_equal(questions.n, 1);
	struct delivery *d = delivery_of_mail(1);
	struct connection_open *o = open_at(0);
	set_verdict(d, 0, VERDICT_SENT);
	post_closed(o, NULL);
	post_back(d);
	post_answer("b.test", "10 mx.b.test 192.0.2.9");
	settle();
	assert_int_equal(opened_to("mx.c.test"), 1);
}

static void sites_keep_windows_of_their_own(void **state)
{
	(void)state;
	begin_idle("");
	struct site *a = site_named("mx.a.test");
	int before = a->window.concurrency;
	send_to(2, "b.test", of_b);
	struct site *b = site_named("mx.b.test");
	b->window.concurrency = 3;
	given_at(0)->returned = true;
	post_back(given_at(0));
	lose(open_at(0), "gone"); /* while it was b's */
	assert_int_equal(a->window.concurrency, before);
	assert_int_equal(b->window.concurrency, 2);
}

#define TWO_TRANSPORTS                                                                             \
	"transport smtp { host_connection_limit = 1 connection_max_age = 0 }"                      \
	"transport other { like = smtp }\nroute b.test { transport = other }"

static void an_idle_one_of_another_transport_makes_room_at_a_full_host(void **state)
{
	(void)state;
	begin_idle(TWO_TRANSPORTS);
	struct connection_open *o = open_at(0);
	send_to(2, "b.test", of_b);
	assert_int_equal(opened.n, 1);
	assert_true(was_told_to_end(o));
	close_orderly(o);
	assert_int_equal(opened_to("mx.b.test"), 1);
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->id, 2);
}

static void one_that_becomes_idle_does_where_another_transport_waits(void **state)
{
	(void)state;
	begin(TWO_TRANSPORTS);
	send_to(1, "a.test", of_a);
	struct connection_open *o = open_at(0);
	ready(o, 1);
	send_to(2, "b.test", of_b);
	send_to(3, "a.test", of_a);
	done(delivery_of_mail(1), VERDICT_SENT);
	assert_false(was_told_to_end(o)); /* its own site has a use for it */
	done(delivery_of_mail(3), VERDICT_SENT);
	assert_true(was_told_to_end(o));
	close_orderly(o);
	assert_int_equal(opened_to("mx.b.test"), 1);
}

static void no_more_of_them_end_than_wait(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 3 connection_max_age = 0 }"
	      "transport other { like = smtp }\nroute b.test { transport = other }");
	for (uint64_t id = 1; id <= 3; id++)
		send_to(id, "a.test", of_a);
	ready_all();
	while (given.n > 0)
		done(given_at(0), VERDICT_SENT);
	for (uint64_t id = 4; id <= 6; id++)
		send_to(id, "b.test", of_b);
	assert_int_equal(ending.n, 1);
}

/* Nobody knows when a connection ends whose host does not answer. */
static void one_that_lingers_is_no_room_to_come(void **state)
{
	(void)state;
	begin("transport smtp { host_connection_limit = 2 connection_max_age = 0 }"
	      "transport other { like = smtp }\nroute b.test { transport = other }");
	send_to(1, "a.test", of_a);
	send_to(2, "a.test", of_a);
	ready_all();
	struct connection_open *lingers = open_at(0), *idle = open_at(1);
	heard_of(lingers, CONNECTION_AWAITED);
	conn_end(&q->db, lingers->owner);
	done(given_at(1), VERDICT_SENT);
	send_to(3, "b.test", of_b);
	assert_true(was_told_to_end(idle));
	close_orderly(idle);
	assert_int_equal(opened_to("mx.b.test"), 1);
}

/* Another flow's mail comes for the first as it goes; depth: of the pipeline. */
static void flood_one_transport_while_another_waits(int depth)
{
	uint64_t id = 10;
	begin(TWO_TRANSPORTS);
	send_to(1, "a.test", of_a);
	struct connection_open *o = open_at(0);
	ready(o, depth);
	arrive(mail(2, "sender@quiet.test", "x@b.test"));
	answer("b.test", of_b);
	for (; !was_told_to_end(o) && id < 60; id += 2) {
		send_to(id, "a.test", of_a);
		send_to(id + 1, "a.test", of_a);
		done(given_at(0), VERDICT_SENT);
	}
	assert_in_range(id, 18, 30 + depth);
	while (given.n > 0)
		done(given_at(0), VERDICT_SENT);
	close_orderly(o);
	assert_int_equal(opened_to("mx.b.test"), 1);
	ready(open_to("mx.b.test"), 1);
	assert_int_equal(given_at(0)->id, 2);
}

static void one_that_has_had_its_turn_makes_room_for_another_transport(void **state)
{
	(void)state;
	flood_one_transport_while_another_waits(1);
}

static void so_does_one_that_is_never_idle(void **state)
{
	(void)state;
	flood_one_transport_while_another_waits(16);
}

static void another_transports_connections_are_not_borrowed(void **state)
{
	(void)state;
	begin_idle("transport other { like = smtp }\nroute \"b.test\" { transport = other }");
	send_to(2, "b.test", of_b);
	assert_int_equal(opened.n, 2);
}

static void one_with_other_tls_has_other_connections(void **state)
{
	(void)state;
	begin_idle("transport other { like = smtp tls = none }\n"
		   "route \"b.test\" { transport = other }");
	send_to(2, "b.test", of_b);
	assert_int_equal(opened.n, 2);
	assert_int_equal(HASH_COUNT(q->db.hosts), 2);
}

static void sites_that_overlap_share_what_they_have_in_common(void **state)
{
	(void)state;
	begin("");
	send_to(1, "a.test", "10 one.test 192.0.2.1");
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	send_to(2, "b.test", "10 one.test 192.0.2.1, 10 two.test 192.0.2.2");
	assert_int_equal(opened.n, 1);
	assert_int_equal(given_at(0)->connection, open_at(0)->connection);
}

static void a_connection_to_a_backup_is_not_borrowed_while_a_better_host_is_in_service(void **state)
{
	(void)state;
	begin("");
	send_to(1, "a.test", "10 back.test 192.0.2.2");
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_SENT);
	send_to(2, "b.test", "10 best.test 192.0.2.1, 20 back.test 192.0.2.2");
	assert_int_equal(given.n, 0);
	assert_int_equal(opened_to("best.test"), 1);
	lose(open_to("best.test"), "refused");
	assert_int_equal(delivery_of_mail(2)->connection, open_to("back.test")->connection);
}

/* The idle connection is to 192.0.2.1, and the domain's host has another address now. */
static void begin_moved(const char *before, const char *after)
{
	begin_idle(before);
	reload(after);
	pass_time(6000);
	send_to(2, "a.test", "10 mx.a.test 192.0.2.7");
}

static void is_given_anew(void)
{
	assert_true(was_told_to_end(open_at(0)));
	assert_int_equal(given.n, 0);
	ready(open_at(1), 1);
	assert_int_equal(given_at(0)->connection, open_at(1)->connection);
}

static void after_a_reload_that_demands_tls_one_to_an_address_of_before_ends(void **state)
{
	(void)state;
	begin_moved("transport smtp { tls = none }", "transport smtp { tls = required }");
	is_given_anew();
}

static void so_does_one_with_the_source_address_of_before(void **state)
{
	(void)state;
	begin_moved("", "transport smtp { source_address = 192.0.2.99 }");
	is_given_anew();
}

static void so_does_one_to_the_port_of_before(void **state)
{
	(void)state;
	begin_moved("", "transport smtp { port = 2525 }");
	is_given_anew();
}

/* What its worker has read when it was opened holds until it is closed. */
static void after_a_reload_one_that_was_opened_with_other_settings_ends(void **state)
{
	static const char *const settings[] = {
		"transport smtp { protocol = lmtp port = 25 }",
		"transport smtp { pipeline_depth = 1 }",
		"transport smtp { convert_8bit = false }",
		"transport smtp { connection_idle_timeout = 1m }",
		"transport smtp { connection_max_age = 1h }",
		"transport smtp { connection_max_messages = 7 }",
		"transport smtp { connect_timeout = 1m }",
		"transport smtp { greeting_timeout = 1m }",
		"transport smtp { helo_timeout = 1m }",
		"transport smtp { starttls_timeout = 1m }",
		"transport smtp { mail_timeout = 1m }",
		"transport smtp { rcpt_timeout = 1m }",
		"transport smtp { data_init_timeout = 1m }",
		"transport smtp { data_block_timeout = 1m }",
		"transport smtp { data_done_timeout = 1m }",
		"transport smtp { rset_timeout = 1m }",
		"transport smtp { quit_timeout = 1m }",
		"tls { groups = { P-256 } }",
	};
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		begin_idle("");
		reload(settings[i]);
		assert_true(was_told_to_end(open_at(0)));
		finish(state);
	}
	begin_idle("");
	reload("transport smtp { connection_limit = 7 destination_rate = 9/s pace = false }");
	assert_int_equal(ending.n, 0);
}

static void one_to_an_address_of_before_goes_on_where_nothing_else_has_changed(void **state)
{
	(void)state;
	begin_moved("", "");
	assert_int_equal(ending.n, 0);
	assert_int_equal(opened.n, 1);
	assert_int_equal(given_at(0)->connection, open_at(0)->connection);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(two_sites_with_names_of_their_own_share_the_connections_to_one_address),
		TEST(the_name_for_sni_and_certificates_is_that_of_the_site_it_is_opened_for),
		TEST(a_verdict_calls_the_host_as_the_site_does_whose_mail_it_is),
		TEST(what_failed_in_tls_under_one_name_is_tried_under_another),
		TEST(a_host_that_failed_under_one_name_is_out_for_all_and_told_by_their_own),
		TEST(one_success_brings_it_back_for_all),
		TEST(what_is_busy_is_not_lent),
		TEST(what_its_own_site_has_mail_for_is_not_lent),
		TEST(after_ten_messages_it_yields_to_a_site_that_can_have_no_other),
		TEST(who_yielded_in_vain_goes_on),
		TEST(one_to_a_host_that_is_out_is_lent),
		TEST(what_is_suspended_by_its_name_borrows_nothing_there),
		TEST(two_that_have_mail_take_turns_of_ten),
		TEST(it_is_not_lent_beyond_the_window_of_who_wants_it),
		TEST(who_has_gone_elsewhere_leaves_the_room_to_the_next),
		TEST(sites_keep_windows_of_their_own),
		TEST(another_transports_connections_are_not_borrowed),
		TEST(an_idle_one_of_another_transport_makes_room_at_a_full_host),
		TEST(one_that_becomes_idle_does_where_another_transport_waits),
		TEST(no_more_of_them_end_than_wait),
		TEST(one_that_lingers_is_no_room_to_come),
		TEST(one_that_has_had_its_turn_makes_room_for_another_transport),
		TEST(so_does_one_that_is_never_idle),
		TEST(one_with_other_tls_has_other_connections),
		TEST(sites_that_overlap_share_what_they_have_in_common),
		TEST(a_connection_to_a_backup_is_not_borrowed_while_a_better_host_is_in_service),
		TEST(after_a_reload_that_demands_tls_one_to_an_address_of_before_ends),
		TEST(so_does_one_with_the_source_address_of_before),
		TEST(so_does_one_to_the_port_of_before),
		TEST(after_a_reload_one_that_was_opened_with_other_settings_ends),
		TEST(one_to_an_address_of_before_goes_on_where_nothing_else_has_changed),
	};
	return RUN(tests);
}
