/* SPDX-License-Identifier: ISC */
/* Where connections come from, and where mail goes when that is refused or missing. */
#include "tests/unit/qmgr/world.h"

#include "base/address.h"
#include "base/date.h"
#include "qmgr/dest/conn.h"
#include "qmgr/dest/destdb_text.h"
#include "qmgr/dest/admission.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/remembered.h"
#include "qmgr/dest/source.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/route/source_choice.h"

#define A "source a { address = { \"192.0.2.10\" } }\n"
#define B "source b { address = { \"192.0.2.11\" } }\n"
#define BOTH A B "transport smtp { sources = { a, b } }\n"
#define TIMES "queue { minimal_backoff_time = 5m maximal_backoff_time = 20m }\n"

static const char hosts[] = "10 mx.test 198.51.100.1";

static const char *from(const struct connection_open *o)
{
	return o->source ? o->source->title : "";
}

static int opened_from(const char *source)
{
	int n = 0;
	for (int i = 0; i < opened.n; i++)
		n += strcmp(from(open_at(i)), source) == 0;
	return n;
}

/* What dns is asked once for each source, it answers. */
static void answer_all(const char *name)
{
	for (int i = 0; i < questions.n;) {
		const struct resolve *r = (const struct resolve *)questions.note[i];
		if (strcmp(r->name, name) == 0)
			answer(name, hosts);
		else
			i++;
	}
}

static void send_of(uint64_t id, const char *flow)
{
	struct envelope *e = mail(id, "sender@here.test", "x@to.test");
	e->flow = mem_strdup(flow);
	arrive(e);
	answer_all("to.test");
}

/* A flow whose turn is that of this source. */
static const char *flow_of(const char *source)
{
	static char name[20];
	const struct conf_uses *u = &q->sched.conf->transport[0].uses;
	for (int i = 0;; i++) {
		snprintf(name, sizeof name, "flow-%d", i);
		if (strcmp(source_choose(u, name, clock_wall_ms(), NULL, NULL)->title, source) == 0)
			return name;
	}
}

static struct site *site_from(const char *source)
{
	for (struct site *s = q->db.sites; s; s = s->hh.next)
		if (s->source && strcmp(s->source->name, source) == 0)
			return s;
	fail_msg("no site from %s", source);
	return NULL;
}

static void post_refused(struct connection_open *o, int code, const char *text)
{
	take(&opened, find(&opened, o));
	o->note.type = CONNECTION_CLOSED;
	o->refused = code / 100 == 5;
	o->why = verdict_answering(VERDICT_AT_GREETING, VERDICT_DEFERRED, code, NULL,
				   "mx.test[198.51.100.1]:25", text);
	post(&o->note);
	settle();
	answer_all("to.test");
}

static void unbind(struct connection_open *o)
{
	take(&opened, find(&opened, o));
	o->note.type = CONNECTION_CLOSED;
	o->unbound = true;
	o->why = verdict_new(VERDICT_DEFERRED, 0, "4.4.1", NULL, "bind: no such address");
	post(&o->note);
	settle();
	answer_all("to.test");
}

static void say(struct delivery *d, enum verdict_stage stage, enum verdict_class class, int code,
		const char *text)
{
	for (uint32_t i = 0; i < d->nrcpt; i++)
		d->rcpt[i].verdict = verdict_answering(stage, class, code, NULL,
						       "mx.test[198.51.100.1]:25", text);
	back(d);
	answer_all("to.test");
}

/* Of what the spool was told of releases and deliveries: nothing. */
static void nothing_is_told(void)
{
	assert_int_equal(told.n, 0);
}

static void without_sources_keys_are_what_they_were(void **state)
{
	(void)state;
	begin("transport smtp { source_address = \"192.0.2.9\" }");
	send_of(1, "f");
	assert_null(open_at(0)->source);
	assert_string_equal(q->db.sites->key, "smtp mx.test");
	assert_null(q->db.sites->source);
	assert_string_equal(q->db.hosts->key, "198.51.100.1:25/opportunistic/192.0.2.9");
	assert_null(q->db.sources);
}

static bool has_turn(const char *source, const char *flow, int64_t at_ms)
{
	const struct conf_uses *u = &q->sched.conf->transport[0].uses;
	return strcmp(source_choose(u, flow, at_ms, NULL, NULL)->title, source) == 0;
}

static void whose_turn_it_is_goes_by_the_systems_date(void **state)
{
	const int64_t day_ms = 86400000, now_ms = clock_wall_ms();
	char flow[20] = "";
	(void)state;
	begin(BOTH);
	for (int i = 0;
	     !*flow || !has_turn("a", flow, now_ms) || !has_turn("b", flow, now_ms + day_ms); i++)
		snprintf(flow, sizeof flow, "flow-%d", i);
	date_set(day_ms);
	send_of(1, flow);
	date_set(0);
	assert_string_equal(from(open_at(0)), "b");
}

static void sites_hosts_and_connections_are_of_a_source(void **state)
{
	(void)state;
	begin(BOTH);
	send_of(1, flow_of("a"));
	send_of(2, flow_of("b"));
	assert_int_equal(opened_from("a"), 1);
	assert_int_equal(opened_from("b"), 1);
	assert_string_equal(site_from("a")->name, "mx.test from=a");
	assert_string_equal(site_from("b")->hosts[0].host->key,
			    "198.51.100.1:25/opportunistic/192.0.2.11");
	assert_true(suspend_site_is(site_from("a"), "mx.test"));
	assert_true(suspend_site_is(site_from("a"), "smtp mx.test from=a"));
	assert_false(suspend_site_is(site_from("a"), "mx.test from=b"));
	/* An idle one of the one is not lent to the other. */
	struct connection_open *a = open_at(strcmp(from(open_at(0)), "a") == 0 ? 0 : 1);
	ready(a, 1);
	done(delivery_of_mail(1), VERDICT_SENT);
	send_of(3, flow_of("b"));
	assert_int_equal(given.n, 0);
}

static void what_waits_moves_when_its_source_is_turned_away(void **state)
{
	(void)state;
	begin(TIMES BOTH);
	send_of(1, flow_of("a"));
	send_of(2, flow_of("a"));
	assert_int_equal(opened_from("a"), 2);
	post_refused(open_at(0), 554, "5.7.1 no service for you");
	post_refused(open_at(0), 554, "5.7.1 no service for you");
	assert_true(opened_from("b") > 0);
	assert_int_equal(opened_from("a"), 0);
	assert_int_equal(site_from("a")->queue.waiting, 0);
	assert_int_equal(site_from("b")->queue.waiting, 2);
	nothing_is_told();
	/* So does what comes, for five minutes. */
	send_of(3, flow_of("a"));
	assert_int_equal(site_from("b")->queue.waiting, 3);
	pass_time(299 * 1000);
	send_of(4, flow_of("a"));
	assert_int_equal(opened_from("a"), 0);
	pass_time(2000);
	send_of(5, flow_of("a"));
	assert_int_equal(opened_from("a"), 1);
}

static void after_its_time_one_message_asks(void **state)
{
	(void)state;
	begin(TIMES BOTH);
	send_of(1, flow_of("a"));
	post_refused(open_at(0), 554, "5.7.1 no service for you");
	pass_time(301 * 1000);
	for (uint64_t id = 2; id < 8; id++)
		send_of(id, flow_of("a"));
	assert_int_equal(opened_from("a"), 1);
	int at = 0;
	while (strcmp(from(open_at(at)), "a") != 0)
		at++;
	post_refused(open_at(at), 554, "5.7.1 no service for you");
	assert_int_equal(site_from("a")->queue.waiting, 0);
	/* Twice as long. */
	pass_time(599 * 1000);
	send_of(8, flow_of("a"));
	assert_int_equal(opened_from("a"), 0);
	pass_time(2000);
	send_of(9, flow_of("a"));
	assert_int_equal(opened_from("a"), 1);
	for (at = 0; strcmp(from(open_at(at)), "a") != 0;)
		at++;
	ready(open_at(at), 1);
	done(delivery_of_mail(9), VERDICT_SENT);
	assert_false(source_on_trial(site_from("a")));
}

static void after_its_time_one_message_asks_whose_host_is_up(void **state)
{
	(void)state;
	begin(TIMES BOTH);
	const char *flow = flow_of("a");
	send_of(1, flow);
	struct connection_open *a = open_at(0);
	ready(a, 16);
	say(delivery_of_mail(1), VERDICT_AT_MAIL, VERDICT_FAILED, 550, "5.7.1 on our blacklist");
	assert_int_equal(site_from("b")->queue.waiting, 1);
	pass_time(301 * 1000);
	for (uint64_t id = 2; id < 8; id++)
		send_of(id, flow);
	assert_int_equal(site_from("a")->queue.waiting, 5);
	assert_int_equal(given.n, 1);
	assert_int_equal(opened_from("a"), 1);
	/* Refused again, all go from the other; taken, all go from here. */
	if (*state)
		say(given_at(0), VERDICT_AT_MAIL, VERDICT_FAILED, 550, "5.7.1 on our blacklist");
	else
		done(given_at(0), VERDICT_SENT);
	assert_int_equal(site_from("a")->queue.waiting + given.n, *state ? 0 : 5);
	assert_int_equal(given.n > 1, !*state);
}

/* The clock of the next one is set back to where the first began. */
static void restart(const char *text)
{
	struct buf known = {0};
	destdb_write(&q->db, &known);
	finish(NULL);
	begin(text);
	destdb_read(&q->db, buf_cstr(&known));
	buf_fini(&known);
}

static void turn_away(uint64_t id, const char *flow)
{
	send_of(id, flow);
	int at = 0;
	while (strcmp(from(open_at(at)), "a") != 0)
		at++;
	post_refused(open_at(at), 554, "5.7.1 no service for you");
}

/* *state: the hosts are a provider's. */
static void a_source_that_is_turned_away_is_so_after_a_restart(void **state)
{
	(void)state;
	const char *text = *state ? TIMES BOTH "provider big { mx = { mx.test } }" : TIMES BOTH;
	begin(text);
	turn_away(1, flow_of("a"));
	restart(text);
	send_of(2, flow_of("a"));
	assert_int_equal(opened_from("a"), 0);
	assert_int_equal(opened_from("b"), 1);
	assert_int_equal(site_from("b")->queue.waiting, 1);
	assert_true(source_on_trial(site_from("a")));
	nothing_is_told();
	pass_time(299 * 1000);
	send_of(3, flow_of("a"));
	assert_int_equal(opened_from("a"), 0);
	/* Then one message asks, and how long it is shut next is twice as long. */
	pass_time(2000);
	turn_away(4, flow_of("a"));
	assert_int_equal(source_shut_until_ms(site_from("a")) - clock_ms, 600 * 1000);
}

static void what_an_operator_resets_is_not_remembered(void **state)
{
	(void)state;
	begin(TIMES BOTH);
	turn_away(1, flow_of("a"));
	struct buf known = {0};
	destdb_write(&q->db, &known); /* it was saved meanwhile */
	buf_fini(&known);
	site_reset(site_from("a"), false);
	restart(TIMES BOTH);
	send_of(2, flow_of("a"));
	assert_int_equal(opened_from("a"), 1);
	assert_int_equal(opened_from("b"), 0);
}

static void what_is_as_at_first_again_is_remembered_no_more(void **state)
{
	(void)state;
	struct buf known = {0};
	begin(BOTH);
	send_of(1, flow_of("a"));
	site_from("a")->window.concurrency = 9;
	destdb_write(&q->db, &known);
	assert_non_null(strstr(buf_cstr(&known), "window=9"));
	site_reset(site_from("a"), false);
	buf_clear(&known);
	destdb_write(&q->db, &known);
	assert_null(strstr(buf_cstr(&known), "window=9"));
	buf_fini(&known);
}

/* After a start, when no mail has gone there yet. */
static void what_is_remembered_can_be_reset(void **state)
{
	static const char *const names[] = {"mx.test", "mx.test from=a", "SMTP mx.test from=a"};
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		begin(TIMES BOTH);
		turn_away(1, flow_of("a"));
		restart(TIMES BOTH);
		assert_int_equal(remembered_forget_site(&q->db, "mx.test from=b"), 0);
		assert_int_equal(remembered_forget_site(&q->db, "x.test"), 0);
		assert_int_equal(remembered_forget_site(&q->db, names[i]), 1);
		send_of(2, flow_of("a"));
		assert_false(source_shut(site_from("a")));
		assert_int_equal(site_from("a")->queue.waiting, 1);
		finish(NULL);
	}
	begin("");
}

/* Nor what was taken, nor what is over; and a clock that was put back keeps nothing shut for longer than it would be now. */
static void what_is_remembered_of_a_source_ends(void **state)
{
	(void)state;
	char line[200];
	begin(TIMES BOTH);
	snprintf(line, sizeof line,
		 "site\tkey=smtp mx.test from=a\tshut=%" PRId64 "\tshut_for=300000\n",
		 clock_wall_ms() - 301000);
	destdb_read(&q->db, line);
	struct buf known = {0};
	destdb_write(&q->db, &known);
	assert_null(strstr(buf_cstr(&known), "shut"));
	buf_fini(&known);
	snprintf(line, sizeof line,
		 "site\tkey=smtp mx.test from=a\tshut=%" PRId64 "\tshut_for=86400000\n",
		 clock_wall_ms() + 365 * INT64_C(86400000));
	destdb_read(&q->db, line);
	send_of(1, flow_of("a"));
	assert_int_equal(opened_from("b"), 1);
	assert_int_equal(source_shut_until_ms(site_from("a")) - clock_ms, 20 * 60 * 1000);
}

static void what_is_taken_for_want_of_another_opens_it_again(void **state)
{
	(void)state;
	begin(TIMES A "transport smtp { sources = { a } }");
	send_of(1, "f");
	struct connection_open *a = open_at(0);
	ready(a, 1);
	say(delivery_of_mail(1), VERDICT_AT_MAIL, VERDICT_FAILED, 550, "5.7.1 on our blacklist");
	assert_true(source_shut(site_from("a")));
	pass_time(1000);
	send_of(2, "f");
	struct delivery *d = delivery_of_mail(2);
	d->began_us = clock_steady_us();
	done(d, VERDICT_SENT);
	assert_false(source_shut(site_from("a")));
	assert_false(source_on_trial(site_from("a")));
}

static int refused_again(void **state)
{
	*state = (void *)hosts;
	return 0;
}

static void a_host_that_is_only_down_moves_nothing(void **state)
{
	(void)state;
	begin(TIMES BOTH);
	send_of(1, flow_of("a"));
	lose(open_at(0), "too busy");
	assert_int_equal(opened_from("b"), 0);
	assert_int_equal(site_from("a")->queue.waiting, 1);
}

static struct connection_open *open_from(const char *source)
{
	for (int i = 0; i < opened.n; i++)
		if (strcmp(from(open_at(i)), source) == 0)
			return open_at(i);
	fail();
	return NULL;
}

/* A message from the source, which its host takes. */
static void is_answered_from(const char *source, uint64_t id)
{
	send_of(id, flow_of(source));
	ready(open_from(source), 1);
	done(delivery_of_mail(id), VERDICT_SENT);
	close_orderly(open_from(source));
	is_delivered(id, 1, VERDICT_SENT);
	is_released(id);
}

static void keep_silent(struct connection_open *o)
{
	pass_time(30 * 1000);
	heard_of(o, CONNECTION_LATE);
	answer_all("to.test");
}

static void who_hears_from_the_other_alone_gets_mail_from_there(void **state)
{
	(void)state;
	begin(TIMES BOTH);
	send_of(1, flow_of("a"));
	send_of(2, flow_of("a"));
	unanswered(open_from("a"), true); /* TCP is late: that may be chance */
	is_answered_from("b", 3);
	assert_int_equal(site_from("a")->queue.waiting, 2);
	keep_silent(open_from("a"));
	assert_int_equal(site_from("a")->queue.waiting, 0);
	assert_int_equal(site_from("b")->queue.waiting, 2);
	nothing_is_told();
	/* After its time one message asks, and is not kept for what has come meanwhile. */
	pass_time(301 * 1000);
	send_of(4, flow_of("a"));
	assert_true(source_on_trial(site_from("a")));
	assert_int_equal(site_from("a")->queue.waiting, 1);
}

/* Who refuses connections does so to all beyond a number. */
static void so_does_who_waits_for_a_connection_in_vain(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		begin(TIMES BOTH);
		send_of(1, flow_of("a"));
		pass_time(i * 30 * 1000);
		is_answered_from("b", 2);
		struct connection_open *o = open_from("a");
		o->why = verdict_new(VERDICT_DEFERRED, 0, "4.4.1", o->host, "no connection");
		close_orderly(o);
		answer_all("to.test");
		assert_int_equal(source_shut(site_from("a")), i == 1);
		assert_int_equal(site_from("b")->queue.waiting, i);
		finish(NULL);
	}
}

static void refuse_connection_from(const char *source)
{
	struct connection_open *o = open_from(source);
	o->why = verdict_new(VERDICT_DEFERRED, 0, "4.4.1", o->host, "connection refused");
	close_orderly(o);
	answer_all("to.test");
}

static void so_does_who_is_refused_connections_for_as_long(void **state)
{
	(void)state;
	static const int probe_s[] = {1, 2, 4, 8, 16};
	for (int answers = 0; answers < 2; answers++) {
		begin(TIMES A B "transport smtp { sources = { a, b } site_patience = 1h }\n");
		is_answered_from("b", 1);
		send_of(2, flow_of("a"));
		refuse_connection_from("a");
		for (size_t i = 0; i < sizeof probe_s / sizeof probe_s[0]; i++) {
			assert_int_equal(site_from("a")->queue.waiting, 1);
			if (answers && i == 4)
				is_answered_from("b", 3);
			pass_time(probe_s[i] * 1125); /* or an eighth later */
			refuse_connection_from("a");
		}
		assert_int_equal(site_from("a")->queue.waiting, !answers);
		assert_int_equal(source_shut(site_from("a")), answers);
		if (answers)
			assert_int_equal(site_from("b")->queue.waiting, 1);
		finish(NULL);
	}
}

static void who_hears_from_nobody_moves_nothing(void **state)
{
	(void)state;
	begin(TIMES BOTH);
	is_answered_from("b", 1);
	pass_time(1000);
	send_of(2, flow_of("a"));
	send_of(3, flow_of("b"));
	keep_silent(open_from("a"));
	assert_int_equal(site_from("a")->queue.waiting, 1);
	assert_false(source_shut(site_from("a")));
}

static void what_is_refused_for_the_address_goes_from_the_other(void **state)
{
	(void)state;
	static const struct {
		enum verdict_class class;
		int code;
		const char *text;
	} said[] = {
		{VERDICT_FAILED, 550, "5.7.1 client [192.0.2.10] blocked using a list"},
		{VERDICT_FAILED, 554, "5.7.1 your IP is on our blacklist"},
		{VERDICT_DEFERRED, 451, "4.7.1 [192.0.2.10] poor reputation"},
		{VERDICT_DEFERRED, 450, "4.7.1 192.0.2.10: we do not like it"},
	};
	for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
		begin(TIMES BOTH);
		send_of(1, flow_of("a"));
		ready(open_at(0), 1);
		say(delivery_of_mail(1), VERDICT_AT_MAIL, said[i].class, said[i].code,
		    said[i].text);
		assert_int_equal(site_from("b")->queue.waiting, 1);
		nothing_is_told();
		finish(NULL);
	}
}

static void what_is_not_said_of_the_address_stays(void **state)
{
	(void)state;
	static const struct {
		enum verdict_stage stage;
		enum verdict_class class;
		int code;
		const char *text;
	} said[] = {
		{VERDICT_AT_RCPT, VERDICT_FAILED, 550, "5.1.1 no such user"},
		{VERDICT_AT_RCPT, VERDICT_DEFERRED, 451, "4.7.1 greylisted, try again later"},
		{VERDICT_AT_END, VERDICT_DEFERRED, 421, "4.7.28 unusual rate from [192.0.2.10]"},
		{VERDICT_AT_END, VERDICT_FAILED, 550, "5.7.1 message is spam"},
	};
	for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
		begin(TIMES BOTH);
		send_of(1, flow_of("a"));
		ready(open_at(0), 1);
		say(delivery_of_mail(1), said[i].stage, said[i].class, said[i].code, said[i].text);
		for (const struct site *s = q->db.sites; s; s = s->hh.next)
			assert_string_equal(s->source->name, "a");
		finish(NULL);
	}
}

static void where_all_are_refused_the_last_word_counts(void **state)
{
	(void)state;
	begin(TIMES BOTH);
	send_of(1, flow_of("a"));
	ready(open_at(0), 1);
	say(delivery_of_mail(1), VERDICT_AT_MAIL, VERDICT_FAILED, 550, "5.7.1 on our blacklist");
	nothing_is_told();
	int at = strcmp(from(open_at(0)), "b") == 0 ? 0 : 1;
	ready(open_at(at), 1);
	say(delivery_of_mail(1), VERDICT_AT_MAIL, VERDICT_FAILED, 550, "5.7.1 on our blacklist");
	assert_int_equal(given.n, 0);
	assert_true(told.n > 0); /* the report to the sender */
	assert_int_equal(told.note[0]->type, SPOOL_STORE);
}

static void a_missing_address_counts_against_nobody(void **state)
{
	(void)state;
	begin(TIMES BOTH);
	send_of(1, flow_of("a"));
	int window = site_from("a")->window.concurrency;
	unbind(open_at(0));
	const struct host *h = site_from("a")->hosts[0].host;
	assert_int_equal(h->state, HOST_UP);
	assert_int_equal(h->failures, 0);
	assert_int_equal(site_from("a")->window.concurrency, window);
	assert_int_equal(site_from("b")->queue.waiting, 1);
	nothing_is_told();
	/* It is tried again after 1 s, then 2 s. */
	pass_time(1001);
	send_of(2, flow_of("a"));
	assert_int_equal(opened_from("a"), 1);
	for (int i = 0; i < opened.n; i++)
		if (strcmp(from(open_at(i)), "a") == 0)
			unbind(open_at(i));
	pass_time(1500);
	send_of(3, flow_of("a"));
	assert_int_equal(opened_from("a"), 0);
	pass_time(600);
	send_of(4, flow_of("a"));
	assert_int_equal(opened_from("a"), 1);
}

static void where_all_are_missing_mail_waits(void **state)
{
	(void)state;
	begin(TIMES A "transport smtp { sources = { a } site_patience = 1s }");
	send_of(1, "f");
	unbind(open_at(0));
	assert_int_equal(site_from("a")->health, SITE_OUT);
	assert_int_equal(admission_of_first(site_from("a")).constraint, CONSTRAINT_OUT);
	nothing_is_told();
	pass_time(1001);
	assert_int_equal(opened_from("a"), 1);
	ready(open_at(0), 1);
	done(delivery_of_mail(1), VERDICT_SENT);
	assert_false(site_from("a")->source->missing[0].known);
}

static void a_source_without_an_address_of_the_family_is_none(void **state)
{
	(void)state;
	begin(TIMES "source six { address = { \"2001:db8::10\" } }\n" B
		    "transport smtp { sources = { \"six=9\", b } }");
	send_of(1, flow_of("six"));
	assert_int_equal(opened_from("six"), 0);
	assert_int_equal(opened_from("b"), 1);
	reload(TIMES "source six { address = { \"2001:db8::10\" } }\n"
		     "transport smtp { sources = { six } }");
	answer_all("to.test");
	struct spool_release *r = NULL;
	for (int i = 0; i < told.n; i++)
		if (told.note[i]->type == SPOOL_RELEASE)
			r = (struct spool_release *)told.note[i];
	assert_non_null(r);
	assert_non_null(strstr(r->envelope->rcpt[0].last->text, "has no address of the family"));
	assert_int_equal(r->envelope->rcpt[0].last->class, VERDICT_DEFERRED);
}

static void at_a_provider_it_is_refused_by_all_sites(void **state)
{
	(void)state;
	begin(TIMES BOTH "provider big { mx = { .big.test } }\n");
	const char *flow = flow_of("a");
	for (int i = 0; i < 3; i++) {
		char to[40], domain[20], host[60];
		snprintf(domain, sizeof domain, "d%d.test", i);
		snprintf(to, sizeof to, "x@%s", domain);
		snprintf(host, sizeof host, "10 mx%d.big.test 198.51.100.%d", i, i + 1);
		struct envelope *e = mail((uint64_t)i + 1, "sender@here.test", to);
		e->flow = mem_strdup(flow);
		arrive(e);
		answer(domain, host);
	}
	assert_string_equal(site_from("a")->provider->key, "big@a");
	assert_string_equal(site_from("a")->provider->name, "big");
	assert_int_equal(opened_from("a"), 3);
	ready(open_at(0), 1);
	struct delivery *d = given_at(0);
	say(d, VERDICT_AT_MAIL, VERDICT_FAILED, 550, "5.7.1 on our blacklist");
	for (int i = 0; i < 3; i++) {
		char domain[20], host[60];
		snprintf(domain, sizeof domain, "d%d.test", i);
		snprintf(host, sizeof host, "10 mx%d.big.test 198.51.100.%d", i, i + 1);
		answer(domain, host);
	}
	int64_t of_a = 0, of_b = 0;
	for (const struct site *s = q->db.sites; s; s = s->hh.next)
		*(strcmp(s->source->name, "a") == 0 ? &of_a : &of_b) += s->queue.waiting;
	assert_int_equal(of_a, 0);
	assert_int_equal(of_b, 3);
	destdb_check(&q->db);
}

static void a_pace_is_of_one_source(void **state)
{
	(void)state;
	begin(TIMES BOTH);
	send_of(1, flow_of("a"));
	ready(open_at(0), 1);
	say(delivery_of_mail(1), VERDICT_AT_END, VERDICT_DEFERRED, 451, "4.7.28 slow down");
	send_of(2, flow_of("b"));
	assert_true(site_pace_narrow(site_from("a")));
	assert_false(site_pace_narrow(site_from("b")));
	/* It is kept under the site's name, with the source in it. */
	struct buf text = {0};
	destdb_write(&q->db, &text);
	assert_non_null(strstr(buf_cstr(&text), "mx.test from=a"));
	buf_fini(&text);
}

static void a_rate_is_of_all_that_leaves_from_it(void **state)
{
	(void)state;
	names_stay = true;
	begin(TIMES "source a { address = { \"192.0.2.10\" } rate = \"1/m\" }\n"
		    "transport smtp { sources = { a } }");
	for (int i = 0; i < 3; i++) {
		char to[40], domain[20], host[60];
		snprintf(domain, sizeof domain, "d%d.test", i);
		snprintf(to, sizeof to, "x@%s", domain);
		snprintf(host, sizeof host, "10 mx%d.test 198.51.100.%d", i, i + 1);
		send_mail((uint64_t)i + 1, to);
		answer(domain, host);
	}
	for (int i = 0; i < opened.n; i++)
		ready(open_at(i), 1);
	for (int minute = 0; minute < 3; minute++) {
		assert_int_equal(given.n, 1);
		done(given_at(0), VERDICT_SENT);
		while (told.n > 0)
			forget(take(&told, 0));
		pass_time(59 * 1000);
		assert_int_equal(given.n, 0);
		pass_time(1100);
		for (int i = 0; i < opened.n; i++)
			ready(open_at(i), 1);
	}
}

static void what_waits_for_a_source_that_is_removed_goes_from_another(void **state)
{
	(void)state;
	begin(TIMES BOTH);
	const char *flow = flow_of("a");
	send_of(1, flow);
	send_of(2, flow);
	ready(open_at(0), 1);
	reload(TIMES B "transport smtp { sources = { b } }");
	answer_all("to.test");
	assert_int_equal(site_from("b")->queue.waiting, 1);
	/* What is under way ends where it is. */
	done(delivery_of_mail(1), VERDICT_SENT);
	assert_int_equal(site_from("a")->queue.waiting, 0);
	destdb_check(&q->db);
}

static void what_waits_goes_from_a_source_that_has_come(void **state)
{
	(void)state;
	begin(TIMES);
	send_of(1, "f");
	assert_int_equal(opened_from(""), 1);
	reload(TIMES A "transport smtp { sources = { a } }");
	answer_all("to.test");
	assert_int_equal(site_from("a")->queue.waiting, 1);
	reload(TIMES);
	answer_all("to.test");
	assert_int_equal(site_from("a")->queue.waiting, 0);
	destdb_check(&q->db);
}

#define TEST(f) cmocka_unit_test_teardown(f, finish)

/* --- whatever happens: settle() counts everything again */

enum { SEEDS = 60, STEPS = 300, DOMAINS = 4 };

static uint64_t seed;

static unsigned chance(unsigned n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1;
	return (unsigned)(seed >> 33) % n;
}

static void answer_everything(void)
{
	while (questions.n > 0) {
		const struct resolve *r = (const struct resolve *)questions.note[0];
		char name[40], of[80];
		snprintf(name, sizeof name, "%s", r->name);
		snprintf(of, sizeof of, "10 mx-%s.big.test 198.51.100.%c", name, name[1] + 1);
		answer(name, of);
	}
}

static void send_anything(uint64_t id)
{
	char to[40], flow[20];
	struct envelope *e = mail(id, "sender@here.test", NULL);
	for (unsigned n = 1 + chance(3); n > 0; n--) {
		snprintf(to, sizeof to, "x%u@d%u.test", n, chance(DOMAINS));
		envelope_add(e, to);
	}
	snprintf(flow, sizeof flow, "flow-%u", chance(9));
	e->flow = mem_strdup(flow);
	arrive(e);
}

static void close_any(bool well)
{
	struct connection_open *o = open_at((int)chance((unsigned)opened.n));
	for (int i = 0; i < given.n; i++)
		if (given_at(i)->connection == o->connection)
			return; /* what it carries comes back first */
	switch (well ? 0 : chance(4)) {
	case 1:
		if (!o->was_ready) {
			unbind(o);
			return;
		}
		break;
	case 2:
		if (!o->was_ready) {
			post_refused(o, 554, "5.7.1 no service for you");
			return;
		}
		break;
	case 3:
		lose(o, "cut off");
		return;
	default:
		break;
	}
	close_orderly(o);
}

static void ready_any(void)
{
	struct connection_open *o = open_at((int)chance((unsigned)opened.n));
	if (o->was_ready)
		return;
	o->was_ready = true;
	ready(o, 1 + (int)chance(3));
}

static void give_back_any(void)
{
	static const char on_list[] = "5.7.1 client [192.0.2.10] is on our blacklist";
	struct delivery *d = given_at((int)chance((unsigned)given.n));
	d->began_us = clock_steady_us();
	switch (chance(5)) {
	case 0:
		say(d, VERDICT_AT_MAIL, VERDICT_FAILED, 550, on_list);
		break;
	case 1:
		say(d, VERDICT_AT_END, VERDICT_DEFERRED, 451, "4.7.28 slow down");
		break;
	case 2:
		put_back(d);
		break;
	default:
		done(d, VERDICT_SENT);
	}
}

static void reload_any(void)
{
	static const char *const conf[] = {
		TIMES BOTH "provider big { mx = { .big.test } }\n",
		TIMES B "transport smtp { sources = { b } }",
		TIMES,
		TIMES A B "source c { address = { \"2001:db8::1\" } }\n"
			  "transport smtp { sources = { a, b, \"c=5\" } }\n"
			  "flow flow-1 { sources = { c, a } }\n",
		TIMES "source a { address = { \"192.0.2.12\" } rate = \"2/s\" }\n"
		      "transport smtp { sources = { a } }",
	};
	reload(conf[chance(sizeof conf / sizeof conf[0])]);
}

static void do_anything(uint64_t id)
{
	unsigned what = chance(20);
	if (what < 8)
		send_anything(id);
	else if (what < 11 && opened.n > 0)
		ready_any();
	else if (what < 15 && given.n > 0)
		give_back_any();
	else if (what < 17 && opened.n > 0)
		close_any(false);
	else if (what == 17)
		reload_any();
	else
		pass_time(chance(chance(4) ? 500 : 400000));
	answer_everything();
}

/* All goes well from now on. */
static void come_to_an_end(void)
{
	for (int i = 0; i < 4000 && q->messages; i++) {
		answer_everything();
		for (int k = opened.n; k > 0; k--)
			ready_any();
		while (given.n > 0)
			done(given_at(0), VERDICT_SENT);
		while (told.n > 0) {
			if (told.note[0]->type == SPOOL_STORE)
				stored(take(&told, 0), true);
			else
				forget(take(&told, 0));
		}
		if (opened.n > 0)
			close_any(true);
		pass_time(1000);
	}
}

static void whatever_happens_all_mail_comes_to_an_end(void **state)
{
	(void)state;
	for (uint64_t s = 1; s <= SEEDS; s++) {
		seed = s;
		begin(TIMES BOTH);
		for (uint64_t id = 1; id <= STEPS; id++)
			do_anything(id);
		come_to_an_end();
		if (q->messages)
			fail_msg("seed %d: mail is left", (int)s);
		finish(NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_sources_keys_are_what_they_were),
		TEST(whose_turn_it_is_goes_by_the_systems_date),
		TEST(sites_hosts_and_connections_are_of_a_source),
		TEST(what_waits_moves_when_its_source_is_turned_away),
		TEST(after_its_time_one_message_asks),
		TEST(after_its_time_one_message_asks_whose_host_is_up),
		cmocka_unit_test_setup_teardown(after_its_time_one_message_asks_whose_host_is_up,
						refused_again, finish),
		TEST(a_source_that_is_turned_away_is_so_after_a_restart),
		cmocka_unit_test_setup_teardown(a_source_that_is_turned_away_is_so_after_a_restart,
						refused_again, finish),
		TEST(what_an_operator_resets_is_not_remembered),
		TEST(what_is_remembered_of_a_source_ends),
		TEST(what_is_as_at_first_again_is_remembered_no_more),
		TEST(what_is_remembered_can_be_reset),
		TEST(what_is_taken_for_want_of_another_opens_it_again),
		TEST(a_host_that_is_only_down_moves_nothing),
		TEST(who_hears_from_the_other_alone_gets_mail_from_there),
		cmocka_unit_test(so_does_who_waits_for_a_connection_in_vain),
		cmocka_unit_test(so_does_who_is_refused_connections_for_as_long),
		TEST(who_hears_from_nobody_moves_nothing),
		cmocka_unit_test(what_is_refused_for_the_address_goes_from_the_other),
		cmocka_unit_test(what_is_not_said_of_the_address_stays),
		TEST(where_all_are_refused_the_last_word_counts),
		TEST(a_missing_address_counts_against_nobody),
		TEST(where_all_are_missing_mail_waits),
		TEST(a_source_without_an_address_of_the_family_is_none),
		TEST(at_a_provider_it_is_refused_by_all_sites),
		TEST(a_pace_is_of_one_source),
		TEST(a_rate_is_of_all_that_leaves_from_it),
		TEST(what_waits_for_a_source_that_is_removed_goes_from_another),
		TEST(what_waits_goes_from_a_source_that_has_come),
		cmocka_unit_test(whatever_happens_all_mail_comes_to_an_end),
	};
	return RUN(tests);
}
