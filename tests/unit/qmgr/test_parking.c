/* SPDX-License-Identifier: ISC */
/* What becomes of the mail of a site that is not alive, and how it comes back. */
#include "tests/unit/qmgr/world.h"

#include "base/metrics.h"
#include "qmgr/dest/congestion.h"
#include "qmgr/dest/conn.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/message.h"
#include "qmgr/sched/job.h"

/* The queue on disk, in as far as it matters here: in order of time. */
struct kept {
	struct envelope *envelope;
	unsigned site;
	bool parked;
};

static struct kept kept[1000];
static int nkept;
static uint32_t slices[1000]; /* that were asked for */
static int nslice;
static int released;

static int end(void **state)
{
	for (int i = 0; i < nkept; i++)
		envelope_free(&kept[i].envelope);
	nkept = nslice = released = 0;
	return finish(state);
}

static void keep(struct spool_release *r)
{
	released += !r->envelope;
	if (!r->envelope)
		return;
	kept[nkept++] = (struct kept){r->envelope, r->site, r->parked};
	r->envelope = NULL;
}

static uint32_t of_site(unsigned site, bool parked)
{
	uint32_t n = 0;
	for (int i = 0; i < nkept; i++)
		n += kept[i].site == site && (kept[i].parked || !parked);
	return n;
}

static void bring_back(unsigned site, uint32_t most)
{
	for (int i = 0; i < nkept && most > 0;) {
		if (kept[i].site != site || !kept[i].parked) {
			i++;
			continue;
		}
		struct envelope *e = kept[i].envelope;
		nkept--;
		memmove(&kept[i], &kept[i + 1], (size_t)(nkept - i) * sizeof kept[0]);
		arrive(e);
		if (questions.n > 0)
			answer("a.test", one_host);
		most--;
	}
}

/* Do what the scheduler has asked of the queue. */
static void serve(void)
{
	while (told.n > 0) {
		struct note *note = take(&told, 0);
		if (note->type == SPOOL_UNPARK) {
			struct spool_unpark *u = (struct spool_unpark *)note;
			if (u->most > 0)
				slices[nslice++] = u->most;
			uint32_t before =
				of_site(u->site, false); /* it has them until they begin */
			bring_back(u->site, u->most);
			asked_back(u, of_site(u->site, true), before);
			continue;
		}
		if (note->type == SPOOL_RELEASE)
			keep((struct spool_release *)note);
		forget(note);
	}
}

/* Time passes, and every connection is refused. */
static void refuse_for(int64_t ms)
{
	for (; ms > 0; ms -= 100) {
		while (opened.n > 0)
			lose(open_at(0), "refused");
		pass_time(ms < 100 ? ms : 100);
		serve();
	}
}

/* So many messages to a.test, all back in the queue since its host refuses them. */
static void begin_parked(const char *text, int n)
{
	begin(text);
	send_many(n);
	refuse_for(11000);
	assert_int_equal(nkept, n);
	assert_int_equal(site_named("mx.test")->parked.parked, n);
}

static void wait_for_probe(const char *host)
{
	for (int i = 0; i < 4000 && opened_to(host) == 0; i++)
		pass_time(100);
	assert_int_equal(opened_to(host), 1);
	serve();
}

/* The connection breaks, and gives back what it carries. */
static void breaks(struct connection_open *o)
{
	for (int i = given.n - 1; i >= 0; i--)
		if (given_at(i)->connection == o->connection) {
			given_at(i)->returned = true;
			post_back(given_at(i));
		}
	lose(o, "gone");
}

static void a_blink_costs_nothing_at_all(void **state)
{
	(void)state;
	begin("");
	send_many(20);
	while (opened.n > 0)
		lose(open_at(0), "refused");
	pass_time(1000);
	for (int i = 0; i < 100 && released < 20; i++) {
		ready_all();
		while (given.n > 0)
			done(given_at(0), VERDICT_SENT);
		serve();
	}
	assert_int_equal(released, 20);
	assert_int_equal(nkept, 0);
	assert_int_equal(clock_ms, 1001000);
}

static void mail_of_a_dead_site_stays_active_for_site_patience(void **state)
{
	(void)state;
	begin("");
	send_many(3);
	refuse_for(9900);
	assert_int_equal(nkept, 0);
	refuse_for(200);
	assert_int_equal(nkept, 3);
}

static void what_could_not_be_tried_is_parked_and_no_attempt_of_it_is_counted(void **state)
{
	(void)state;
	begin("");
	send_many(3);
	refuse_for(11000);
	for (int i = 0; i < 3; i++) {
		assert_true(kept[i].parked);
		assert_int_equal(kept[i].site, site_named("mx.test")->parked.number);
		assert_int_equal(kept[i].envelope->rcpt[0].tries, 0);
		assert_string_equal(kept[i].envelope->rcpt[0].last->text, "refused");
	}
	assert_int_equal(site_named("mx.test")->parked.deferred, 3);
}

static void a_crowded_active_queue_parks_at_once(void **state)
{
	(void)state;
	begin("queue { message_active_limit = 10 }");
	send_many(5);
	while (opened.n > 0)
		lose(open_at(0), "refused");
	assert_int_equal(told.n, 0); /* half of it is not yet crowded */
	send_mail(6, "x@a.test");
	assert_int_equal(told.n, 6);
	serve();
	assert_int_equal(nkept, 6);
	assert_true(kept[5].parked);
}

static void what_the_host_has_put_off_in_the_same_round_is_deferred_and_not_parked(void **state)
{
	(void)state;
	begin("transport smtp { destination_recipient_limit = 1 "
	      "initial_destination_concurrency = 1 destination_concurrency_limit = 1 }");
	struct envelope *e = mail(1, "", "x@a.test");
	envelope_add(e, "y@a.test");
	arrive(e);
	send_mail(2, "x@a.test");
	answer("a.test", one_host);
	ready(open_at(0), 1);
	done(given_at(0), VERDICT_DEFERRED);
	clock_ms += 20000; /* it is no proof any more that the host serves */
	breaks(open_at(0));
	refuse_for(11000);
	assert_int_equal(nkept, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(kept[i].parked, kept[i].envelope->id == 2);
		assert_int_equal(kept[i].site, site_named("mx.test")->parked.number);
	}
	assert_int_equal(site_named("mx.test")->parked.parked, 1);
	assert_int_equal(site_named("mx.test")->parked.deferred, 2);
}

static void what_is_done_at_another_site_does_not_keep_the_rest_from_being_parked(void **state)
{
	(void)state;
	begin("");
	struct envelope *e = mail(1, "", "x@a.test");
	envelope_add(e, "y@b.test");
	arrive(e);
	answer("a.test", one_host);
	answer("b.test", "10 b.test 192.0.2.2");
	ready(open_to("b.test"), 1);
	done(given_at(0), VERDICT_SENT);
	close_orderly(open_to("b.test"));
	refuse_for(11000);
	assert_int_equal(nkept, 1);
	assert_true(kept[0].parked);
	assert_true(kept[0].envelope->rcpt[1].done);
}

static void mail_is_never_parked_while_another_host_serves(void **state)
{
	(void)state;
	begin("transport smtp { destination_concurrency_limit = 1 "
	      "initial_destination_concurrency = 1 }");
	for (uint64_t id = 1; id <= 10; id++)
		send_mail(id, "x@a.test");
	answer("a.test", "10 mx.test 192.0.2.1, 20 backup.test 192.0.2.2");
	lose(open_to("mx.test"), "refused");
	ready(open_to("backup.test"), 1);
	for (int i = 0; i < 600; i++) {
		pass_time(100);
		while (opened_to("mx.test") > 0)
			lose(open_to("mx.test"), "refused");
		serve();
	}
	assert_int_equal(nkept, 0);
	assert_int_equal(given.n, 1);
}

static void new_mail_to_a_site_long_dead_waits_for_a_probe_that_is_under_way(void **state)
{
	(void)state;
	begin_parked("", 1);
	refuse_for(600000);
	wait_for_probe("mx.test");
	pass_time(4000);
	send_mail(2, "y@a.test");
	if (questions.n > 0)
		answer("a.test", one_host);
	pass_time(5900);
	serve();
	assert_int_equal(nkept, 1);
	pass_time(100); /* since the probe was begun */
	serve();
	assert_int_equal(nkept, 2);
	assert_true(kept[1].parked);
	refuse_for(1000);
	wait_for_probe("mx.test");
	send_mail(3, "z@a.test");
	if (questions.n > 0)
		answer("a.test", one_host);
	ready(open_to("mx.test"), 1);
	assert_int_equal(given_at(0)->id, 3);
}

static void new_mail_to_a_site_long_dead_is_parked_at_once_when_no_probe_is_due(void **state)
{
	(void)state;
	begin_parked("", 1);
	refuse_for(600000);
	assert_int_equal(opened.n, 0);
	send_mail(2, "y@a.test");
	if (questions.n > 0)
		answer("a.test", one_host);
	serve();
	assert_int_equal(nkept, 2);
	assert_true(kept[1].parked);
	assert_int_equal(opened.n, 0);
}

static void probes_go_on_for_parked_mail_alone(void **state)
{
	(void)state;
	int probes = 0;
	begin_parked("", 1);
	for (int i = 0; i < 3600; i++) {
		pass_time(1000);
		serve();
		assert_in_range(opened.n, 0, 1);
		probes += opened.n;
		if (opened.n > 0)
			lose(open_at(0), "refused");
	}
	assert_in_range(probes, 12, 20); /* each five minutes, after a while */
}

static void and_end_when_none_is_left(void **state)
{
	(void)state;
	begin_parked("", 1);
	envelope_free(&kept[0].envelope); /* the operator has deleted it */
	nkept = 0;
	refuse_for(20000);
	for (int i = 0; i < 400; i++) {
		pass_time(1000);
		serve();
		assert_int_equal(opened.n, 0);
	}
}

static void a_site_is_known_as_long_as_mail_waits_for_it(void **state)
{
	(void)state;
	begin_parked("", 1);
	refuse_for(7200000);
	assert_int_equal(site_named("mx.test")->health, SITE_DEAD);
	envelope_free(&kept[0].envelope);
	nkept = 0;
	refuse_for(30000);
	assert_null(q->db.sites);
}

/* Sites that mail waits for, as /metrics counts them. */
static int64_t held_by(const char *constraint)
{
	congestion_count(&q->db);
	return metric_cell_value(metric_cell(FAMILY_sites_held, constraint, NULL));
}

static void a_site_whose_mail_is_parked_counts_by_what_it_waits_for(void **state)
{
	(void)state;
	begin_parked("transport \"smtp\" { destination_concurrency_failed_cohort_limit = 0 }", 1);
	assert_int_equal(held_by("out"), 1);
	suspend_begin(&q->db, "mx.test", SUSPEND_SITE, 0);
	qmgr_thread_settle(q);
	serve();
	assert_int_equal(held_by("out"), 0);
	assert_int_equal(held_by("suspended"), 1);
	suspend_end(&q->db, "mx.test");
	qmgr_thread_settle(q);
	wait_for_probe("mx.test");
	ready(open_at(0), 1);
	serve();
	done(given_at(0), VERDICT_SENT);
	serve();
	assert_int_equal(held_by("out"), 0);
	suspend_begin(&q->db, "mx.test", SUSPEND_SITE, 0);
	qmgr_thread_settle(q);
	serve();
	assert_int_equal(held_by("suspended"), 0); /* nothing waits */
}

static void a_dead_site_whose_mail_is_parked_counts_as_dead(void **state)
{
	(void)state;
	begin_parked("", 3);
	refuse_for(60000);
	assert_int_equal(site_named("mx.test")->health, SITE_DEAD);
	assert_int_equal(held_by("dead"), 1);
	assert_int_equal(held_by("out"), 0);
}

static void its_mail_comes_back_when_it_lives_again_oldest_first(void **state)
{
	(void)state;
	begin_parked("", 12);
	refuse_for(600000);
	wait_for_probe("mx.test");
	ready(open_at(0), 1);
	assert_int_equal(site_named("mx.test")->health, SITE_ALIVE);
	serve();
	assert_int_equal(nslice, 1);
	assert_int_equal(nkept, 0);
	for (uint64_t id = 1; id <= 12; id++) {
		assert_int_equal(given_at(0)->id, id);
		done(given_at(0), VERDICT_SENT);
	}
	serve();
	assert_int_equal(released, 12);
}

static void what_has_come_back_is_soon_not_counted_any_more(void **state)
{
	(void)state;
	begin_parked("", 12);
	wait_for_probe("mx.test");
	ready(open_at(0), 1);
	serve();
	for (int i = 0; i < 12; i++)
		done(given_at(0), VERDICT_SENT);
	for (int i = 0; i < 11; i++) {
		pass_time(100);
		serve();
	}
	assert_int_equal(site_named("mx.test")->parked.deferred, 0);
}

static void it_comes_in_slices_that_grow_as_they_are_delivered(void **state)
{
	(void)state;
	begin_parked("queue { message_active_limit = 1000 }", 400);
	wait_for_probe("mx.test");
	ready(open_at(0), 1);
	serve();
	assert_int_equal(nslice, 1);
	assert_int_equal(slices[0], 20);
	for (int i = 0; i < 9; i++)
		done(given_at(0), VERDICT_SENT);
	serve();
	assert_int_equal(nslice, 1);
	done(given_at(0), VERDICT_SENT);
	serve();
	assert_int_equal(nslice, 2);
	assert_int_equal(slices[1], 40);
	for (int i = 0; i < 390 && given.n > 0; i++) {
		done(given_at(0), VERDICT_SENT);
		serve();
		assert_true(i > 1 || nslice == 2);
	}
	assert_int_equal(released, 400);
	assert_int_equal(slices[2], 80);
	assert_int_equal(slices[3], 160);
}

static void as_long_as_nothing_is_delivered_little_comes(void **state)
{
	(void)state;
	begin_parked("queue { message_active_limit = 1000 }", 400);
	wait_for_probe("mx.test");
	ready(open_at(0), 1);
	for (int i = 0; i < 60; i++) {
		pass_time(1000);
		serve();
	}
	assert_in_range(400 - nkept, 20, 100);
}

static void a_site_that_dies_again_asks_for_no_more_and_begins_with_little(void **state)
{
	(void)state;
	begin_parked("queue { message_active_limit = 1000 }", 400);
	wait_for_probe("mx.test");
	ready(open_at(0), 1);
	serve();
	for (int i = 0; i < 40; i++) {
		done(given_at(0), VERDICT_SENT);
		serve();
	}
	assert_int_equal(nslice, 3);
	clock_ms += 20000;
	for (int i = opened.n - 1; i >= 0; i--)
		breaks(open_at(i));
	refuse_for(12000);
	assert_int_equal(nslice, 3);
	assert_int_equal(nkept, 360);
	wait_for_probe("mx.test");
	ready(open_at(0), 1);
	serve();
	assert_int_equal(nslice, 4);
	assert_int_equal(slices[3], 20);
}

static void mail_of_a_suspended_site_is_parked_at_once_and_comes_at_resume(void **state)
{
	(void)state;
	begin("");
	send_many(3);
	suspend_begin(&q->db, "mx.test", SUSPEND_SITE, 0);
	qmgr_thread_settle(q);
	serve();
	assert_int_equal(nkept, 3);
	for (int i = 0; i < 3; i++) {
		assert_true(kept[i].parked);
		assert_int_equal(kept[i].envelope->rcpt[0].tries, 0);
		assert_string_equal(kept[i].envelope->rcpt[0].last->text,
				    "the site is suspended by the operator");
	}
	while (opened.n > 0)
		close_orderly(open_at(0));
	for (int i = 0; i < 1000; i++) {
		pass_time(1000);
		serve();
		assert_int_equal(opened.n, 0); /* nor is it probed */
	}
	suspend_end(&q->db, "mx.test");
	qmgr_thread_settle(q);
	serve();
	assert_int_equal(nkept, 0);
	assert_true(opened.n > 0);
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->id, 1);
}

static void a_suspension_that_has_an_end_ends_by_itself(void **state)
{
	(void)state;
	begin("");
	send_many(3);
	int64_t until_ms = clock_wall_ms() + 3600000;
	assert_true(suspend_begin(&q->db, "mx.test", SUSPEND_SITE, until_ms));
	assert_false(suspend_begin(&q->db, "mx.test", SUSPEND_SITE, until_ms));
	qmgr_thread_settle(q);
	serve();
	assert_int_equal(nkept, 3);
	assert_non_null(strstr(kept[0].envelope->rcpt[0].last->text,
			       "the site is suspended by the operator until 20"));
	while (opened.n > 0)
		close_orderly(open_at(0));
	for (int i = 0; i < 3599; i++) {
		pass_time(1000);
		serve();
		assert_int_equal(opened.n, 0);
	}
	pass_time(1000);
	serve();
	assert_null(q->db.suspended);
	assert_int_equal(nkept, 0);
	assert_true(opened.n > 0);
}

static void what_was_said_last_of_its_end_holds(void **state)
{
	(void)state;
	begin("");
	suspend_begin(&q->db, "a.test", SUSPEND_SITE, clock_wall_ms() + 10000);
	suspend_begin(&q->db, "b.test", SUSPEND_SITE, clock_wall_ms() + 10000);
	assert_false(suspend_begin(&q->db, "a.test", SUSPEND_SITE, 0)); /* until it is resumed */
	assert_false(suspend_begin(&q->db, "b.test", SUSPEND_SITE, clock_wall_ms() + 20000));
	assert_false(suspend_begin(&q->db, "c.test", SUSPEND_SITE, clock_wall_ms()));
	pass_time(10000);
	assert_int_equal(HASH_COUNT(q->db.suspended), 2);
	pass_time(10000);
	assert_int_equal(HASH_COUNT(q->db.suspended), 1);
	assert_string_equal(q->db.suspended->name, "a.test");
}

/* Domains whose mail in the queue was said to be due, since it was asked last. */
static int count_flushed(void)
{
	int n = 0;
	for (int i = 0; i < told.n;) {
		if (told.note[i]->type != SPOOL_COMMAND) {
			i++;
			continue;
		}
		struct spool_command *c = take(&told, i);
		n += c->op == SPOOL_FLUSH;
		spool_command_free(&c);
	}
	return n;
}

static void it_holds_though_the_name_means_something_else_by_then(void **state)
{
	static const enum suspend_kind kinds[] = {SUSPEND_ANY, SUSPEND_SITE, SUSPEND_DOMAIN,
						  SUSPEND_HOST, SUSPEND_ANY};
	(void)state;
	begin("");
	suspend_begin(&q->db, "mx.test", SUSPEND_PROVIDER, 0);
	suspend_begin(&q->db, "mx.test", SUSPEND_FLOW, 0);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		suspend_begin(&q->db, "mx.test", kinds[i], i % 2 ? clock_wall_ms() + 2000 : 0);
		assert_int_equal(HASH_COUNT(q->db.suspended), 3);
		assert_non_null(suspend_find(&q->db, "mx.test", kinds[i]));
	}
	assert_int_equal(count_flushed(), 2); /* what was held for a domain of that name */
	assert_true(suspend_end(&q->db, "mx.test"));
	assert_int_equal(count_flushed(), 1);
	suspend_begin(&q->db, "MX.test", SUSPEND_ANY, 0);
	send_many(1);
	struct site *s = site_named("mx.test");
	assert_int_equal(s->health, SITE_SUSPENDED);
	suspend_begin(&q->db, "mx.test", SUSPEND_SITE, clock_wall_ms() + 2000);
	assert_int_equal(count_flushed(), 1);
	pass_time(1999);
	assert_int_equal(s->health, SITE_SUSPENDED);
	pass_time(1);
	assert_int_equal(s->health, SITE_ALIVE);
}

/* Two recipients of one site are in flight, and the domain of one is suspended. */
static struct delivery *begin_in_flight(void)
{
	begin("route \"*\" { relay = { \"[192.0.2.1]\" } }");
	struct envelope *e = mail(1, "sender@here.test", "x@a.test");
	envelope_add(e, "y@b.test");
	arrive(e);
	answer("192.0.2.1", "0 192.0.2.1 192.0.2.1");
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->nrcpt, 2);
	suspend_begin(&q->db, "a.test", SUSPEND_DOMAIN, 0);
	return given_at(0);
}

static void only_the_other_goes_on(void)
{
	while (opened.n > 0 && given.n == 0)
		pass_time(1000);
	assert_int_equal(given_at(0)->nrcpt, 1);
	assert_string_equal(given_at(0)->rcpt[0].address, "y@b.test");
	done(given_at(0), VERDICT_SENT);
	serve();
	assert_int_equal(nkept, 1);
	assert_string_equal(kept[0].envelope->rcpt[0].last->text,
			    "the domain is suspended by the operator");
	assert_int_equal(kept[0].envelope->rcpt[0].tries, 0);
}

static void what_comes_back_untouched_for_a_suspended_domain_is_put_off(void **state)
{
	(void)state;
	put_back(begin_in_flight());
	only_the_other_goes_on();
}

static void what_is_to_be_tried_again_at_the_pace_likewise(void **state)
{
	(void)state;
	struct delivery *d = begin_in_flight();
	for (uint32_t i = 0; i < d->nrcpt; i++)
		d->rcpt[i].verdict =
			verdict_answering(VERDICT_AT_RCPT, VERDICT_DEFERRED, 450, "4.7.28",
					  "mx.test[192.0.2.1]:25", "slow down");
	back(d);
	only_the_other_goes_on();
}

static void mail_whose_only_host_is_suspended_is_parked_and_comes_at_resume(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	suspend_begin(&q->db, "192.0.2.1", SUSPEND_HOST, 0);
	qmgr_thread_settle(q);
	while (opened.n > 0)
		close_orderly(open_at(0));
	refuse_for(11000);
	assert_int_equal(nkept, 1);
	assert_true(kept[0].parked);
	assert_string_equal(kept[0].envelope->rcpt[0].last->text,
			    "the host is suspended by the operator");
	for (int i = 0; i < 1000; i++) {
		pass_time(1000);
		serve();
		assert_int_equal(opened.n, 0);
	}
	suspend_end(&q->db, "192.0.2.1");
	qmgr_thread_settle(q);
	serve();
	assert_int_equal(opened_to("mx.test"), 1);
}

/* Sixty sites, each with a host of its own that refuses. */
static void at_most_a_quarter_of_a_transports_connections_are_probes(void **state)
{
	(void)state;
	int most = 0;
	begin("transport smtp { connection_limit = 40 }");
	for (int i = 0; i < 60; i++) {
		char to[40], domain[32], hosts[64];
		snprintf(domain, sizeof domain, "d%d.test", i);
		snprintf(to, sizeof to, "x@%s", domain);
		snprintf(hosts, sizeof hosts, "10 mx%d.test 192.0.2.%d", i, i + 1);
		send_mail((uint64_t)(i + 1), to);
		answer(domain, hosts);
	}
	refuse_for(15000);
	assert_int_equal(nkept, 60);
	for (int i = 0; i < 600; i++) { /* black holes now: no probe ends */
		pass_time(1000);
		serve();
		most = opened.n > most ? opened.n : most;
	}
	assert_in_range(most, 8, 10);
}

static void an_urgent_message_has_its_site_probed_at_once_and_no_other(void **state)
{
	(void)state;
	begin("");
	send_mail(1, "x@a.test");
	answer("a.test", "10 a.test 192.0.2.1");
	send_mail(2, "x@b.test");
	answer("b.test", "10 b.test 192.0.2.2");
	refuse_for(700000);
	assert_int_equal(nkept, 2);
	assert_int_equal(opened.n, 0);
	struct spool_arrival *a = mem_zalloc(sizeof *a);
	a->note.type = SPOOL_ARRIVAL;
	a->envelope = mail(3, "", "x@a.test");
	a->content = content_in_memory(mem_strdup("x\r\n"), 3);
	a->urgent = true;
	post(&a->note);
	settle();
	answer("a.test", "10 a.test 192.0.2.1");
	assert_int_equal(opened_to("a.test"), 1);
	assert_int_equal(opened.n, 1);
	serve();
	assert_int_equal(nkept, 2); /* it waits for the answer */
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->id, 3);
}

/* What goes back to the queue while a question is under way is not in the answer. */
static void what_is_parked_while_the_queue_is_asked_is_not_forgotten(void **state)
{
	(void)state;
	begin_parked("", 1);
	struct site *s = site_named("mx.test");
	envelope_free(&kept[0].envelope);
	nkept = 0;
	while (told.n == 0) {
		pass_time(100);
		while (opened.n > 0)
			lose(open_at(0), "refused");
	}
	struct spool_unpark *u = is_asked_back();
	send_mail(2, "x@a.test");
	if (questions.n > 0)
		answer("a.test", one_host);
	assert_int_equal(told.n, 1);
	asked_back(u, 0, 0); /* as it was when that was not there */
	serve();
	assert_int_equal(nkept, 1);
	assert_int_equal(s->parked.number, kept[0].site);
	assert_ptr_equal(q->db.numbered[kept[0].site], s);
	assert_int_equal(s->parked.parked, 1);
}

/* Two connections of before it failed, one of which hangs; the probe ends without a word. */
static void a_host_is_probed_again_after_a_probe_that_ended_while_another_hung(void **state)
{
	(void)state;
	begin("");
	send_many(2);
	lose(open_at(1), "refused");
	pass_time(1000);
	assert_int_equal(opened.n, 2);
	close_orderly(open_at(1)); /* the probe */
	pass_time(1000);
	lose(open_at(0), "no answer in time");
	pass_time(1000);
	assert_int_equal(opened.n, 1);
	ready(open_at(0), 1);
	assert_int_equal(given_at(0)->id, 1);
}

static void a_host_is_probed_again_after_a_probe_in_which_it_lost_count(void **state)
{
	(void)state;
	begin("");
	send_many(1);
	lose(open_at(0), "refused");
	pass_time(1000);
	open_at(0)->confused = true;
	open_at(0)->mode = CONNECTION_LOCKSTEP;
	lose(open_at(0), "out of step");
	pass_time(1000);
	assert_int_equal(opened.n, 1);
	assert_int_equal(open_at(0)->mode, CONNECTION_LOCKSTEP);
}

#define TEST(name) cmocka_unit_test_teardown(name, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_blink_costs_nothing_at_all),
		TEST(mail_of_a_dead_site_stays_active_for_site_patience),
		TEST(what_could_not_be_tried_is_parked_and_no_attempt_of_it_is_counted),
		TEST(a_crowded_active_queue_parks_at_once),
		TEST(what_the_host_has_put_off_in_the_same_round_is_deferred_and_not_parked),
		TEST(what_is_done_at_another_site_does_not_keep_the_rest_from_being_parked),
		TEST(mail_is_never_parked_while_another_host_serves),
		TEST(new_mail_to_a_site_long_dead_waits_for_a_probe_that_is_under_way),
		TEST(new_mail_to_a_site_long_dead_is_parked_at_once_when_no_probe_is_due),
		TEST(probes_go_on_for_parked_mail_alone),
		TEST(and_end_when_none_is_left),
		TEST(a_site_is_known_as_long_as_mail_waits_for_it),
		TEST(a_site_whose_mail_is_parked_counts_by_what_it_waits_for),
		TEST(a_dead_site_whose_mail_is_parked_counts_as_dead),
		TEST(its_mail_comes_back_when_it_lives_again_oldest_first),
		TEST(what_has_come_back_is_soon_not_counted_any_more),
		TEST(it_comes_in_slices_that_grow_as_they_are_delivered),
		TEST(as_long_as_nothing_is_delivered_little_comes),
		TEST(a_site_that_dies_again_asks_for_no_more_and_begins_with_little),
		TEST(mail_of_a_suspended_site_is_parked_at_once_and_comes_at_resume),
		TEST(a_suspension_that_has_an_end_ends_by_itself),
		TEST(what_was_said_last_of_its_end_holds),
		TEST(it_holds_though_the_name_means_something_else_by_then),
		TEST(what_comes_back_untouched_for_a_suspended_domain_is_put_off),
		TEST(what_is_to_be_tried_again_at_the_pace_likewise),
		TEST(mail_whose_only_host_is_suspended_is_parked_and_comes_at_resume),
		TEST(at_most_a_quarter_of_a_transports_connections_are_probes),
		TEST(an_urgent_message_has_its_site_probed_at_once_and_no_other),
		TEST(what_is_parked_while_the_queue_is_asked_is_not_forgotten),
		TEST(a_host_is_probed_again_after_a_probe_that_ended_while_another_hung),
		TEST(a_host_is_probed_again_after_a_probe_in_which_it_lost_count),
	};
	return RUN(tests);
}
