/* SPDX-License-Identifier: ISC */
/* The rate of a flow that the nodes of a cluster share: what is selected was reserved before, and what was reserved is not lost. */
#include "tests/unit/qmgr/world.h"

#include "base/fact.h"
#include "base/sharing.h"
#include "qmgr/dest/admission.h"
#include "qmgr/sched/flow.h"

#include <stdlib.h>

enum { SECOND = 1000 };

#define ONE_EACH                                                                                   \
	"transport smtp { destination_concurrency_limit = 1 host_connection_limit = 0 "            \
	"connection_max_age = 0 connection_max_messages = 0 connection_idle_timeout = 1h }\n"

static struct box wants;

static void to_cluster(void *context, struct note *note)
{
	(void)context;
	if (note->type == FACT_SEEN)
		fact_free(&(struct fact *){(struct fact *)note});
	else
		put(&wants, note);
}

static void begin_in_cluster(const char *text)
{
	begin(text);
	struct qmgr_edges edges = q->db.edges;
	edges.to_cluster = to_cluster;
	qmgr_wire(q, &edges);
}

static int finish_in_cluster(void **state)
{
	q->sched.share = NULL;
	int rc = finish(state);
	while (wants.n > 0)
		free(take(&wants, 0));
	return rc;
}

static struct sharing_want *next_want(int64_t n)
{
	assert_int_equal(wants.n, 1);
	assert_int_equal(wants.note[0]->type, SHARING_WANT);
	struct sharing_want *w = take(&wants, 0);
	assert_string_equal(w->key, "flow/a.test");
	assert_int_equal(w->n, n);
	return w;
}

static void grant(struct sharing_want *w, int64_t n, int64_t from_ms, int64_t again_ms)
{
	w->n = n;
	w->from_us = from_ms * 1000;
	w->again_us = again_ms * 1000;
	post(&w->note);
	settle();
	ready_all();
}

static void pass(int64_t ms)
{
	pass_time(ms);
	ready_all();
}

/* Each of these has a site of its own. */
static void send_as(uint64_t id, const char *sender)
{
	char to[40], name[40], host[60];
	snprintf(to, sizeof to, "x@%d.test", (int)id);
	arrive(mail(id, sender, to));
	snprintf(name, sizeof name, "%d.test", (int)id);
	snprintf(host, sizeof host, "10 mx-%d.test 192.0.2.%d", (int)id, (int)id);
	answer(name, host);
	ready_all();
}

static void send_some(int n)
{
	for (int i = 1; i <= n; i++)
		send_as((uint64_t)i, "x@a.test");
}

/* The first asked when it was alone; each answer of nothing lets it ask for all that wait. */
static struct sharing_want *want_of_all(int64_t n)
{
	grant(next_want(1), 0, clock_ms, clock_ms);
	return next_want(n);
}

static void nothing_is_sent_that_was_not_reserved(void **state)
{
	(void)state;
	begin_in_cluster(ONE_EACH "flow a.test { rate = 10/s }");
	send_some(6);
	send_as(7, "x@b.test");
	assert_int_equal(given.n, 1); /* another flow's */
	assert_int_equal(given_at(0)->id, 7);
	assert_int_equal(opened.n, 1);
	const struct admission l = admission_of_first(site_named("mx-1.test"));
	assert_int_equal(l.constraint, CONSTRAINT_FLOW_RATE);
	struct sharing_want *w = want_of_all(6);
	assert_int_equal(w->rate.events, 10);
	grant(w, 2, clock_ms + 20, 0);
	assert_int_equal(given.n, 1);
	pass(20);
	assert_int_equal(given.n, 2);
	assert_int_equal(wants.n, 0);
	pass(100);
	assert_int_equal(given.n, 3);
	w = next_want(4); /* not for what has just been selected */
	grant(w, 0, clock_ms + 500, clock_ms + 400);
	pass(399);
	assert_int_equal(given.n, 3);
	assert_int_equal(wants.n, 0);
	pass(1);
	grant(next_want(4), 1, clock_ms, 0);
	assert_int_equal(given.n, 4);
}

static void what_comes_back_unselected_is_used_and_not_asked_for_again(void **state)
{
	(void)state;
	names_stay = true;
	begin_in_cluster(ONE_EACH "flow a.test { rate = 1/s }");
	arrive(mail(1, "x@a.test", "x@1.test"));
	answer("1.test", "10 mx-1.test 192.0.2.1");
	arrive(mail(2, "x@a.test", "x@2.test"));
	answer("2.test", "10 mx-2.test 192.0.2.2");
	struct sharing_want *w = next_want(1);
	w->n = 1;
	w->from_us = clock_ms * 1000;
	post(&w->note);
	settle();
	assert_int_equal(opened_to("mx-1.test"), 1);
	w = next_want(1); /* there is no answer yet */
	pass_time(30 * SECOND);
	lose(open_at(0), "refused");
	pass_time(1);
	assert_int_equal(opened_to("mx-2.test"), 1);
	free(w);
}

/* One connection: what waits for its turn there keeps what was reserved for it, and asks for no more. */
static void what_is_reserved_is_not_lost_while_its_mail_waits_for_a_place(void **state)
{
	(void)state;
	begin_in_cluster(ONE_EACH "flow a.test { rate = 10/s }");
	for (uint64_t id = 1; id <= 5; id++) {
		arrive(mail(id, id == 1 ? "x@b.test" : "x@a.test", "x@dest.test"));
		if (id == 1)
			answer("dest.test", "10 mx.test 192.0.2.1");
	}
	ready_all();
	assert_int_equal(given_at(0)->id, 1);
	grant(want_of_all(4), 2, clock_ms, 0);
	for (int i = 0; i < 10; i++)
		pass(SECOND);
	assert_int_equal(wants.n, 0);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given_at(0)->id, 2);
	done(given_at(0), VERDICT_SENT);
	assert_int_equal(given.n, 0); /* nor are both sent at once */
	pass(50);
	assert_int_equal(given_at(0)->id, 3);
	free(next_want(2));
}

static void without_mail_nothing_is_asked_and_the_flow_forgotten(void **state)
{
	(void)state;
	begin_in_cluster(ONE_EACH "flow a.test { rate = 10/s }");
	send_some(1);
	struct sharing_want *w = next_want(1);
	cancel(1);
	pass(SECOND);
	assert_int_equal(HASH_COUNT(q->sched.flows), 0);
	grant(w, 1, clock_ms, 0); /* nobody wants it any more */
	assert_int_equal(wants.n, 0);
}

static void a_reload_changes_the_rate_at_once(void **state)
{
	(void)state;
	begin_in_cluster(ONE_EACH "flow a.test { rate = 1/h }");
	send_some(3);
	grant(want_of_all(3), 0, clock_ms, clock_ms + 3600 * SECOND);
	pass(SECOND);
	assert_int_equal(wants.n, 0);
	reload(ONE_EACH "flow a.test { rate = 10/s }");
	pass(100);
	grant(next_want(3), 1, clock_ms, 0);
	assert_int_equal(given.n, 1);
	free(next_want(2));
	reload(ONE_EACH);
	while (questions.n > 0) {
		char name[40], host[60];
		snprintf(name, sizeof name, "%s", ((struct resolve *)questions.note[0])->name);
		snprintf(host, sizeof host, "10 mx-%s 192.0.2.%c", name, *name);
		answer(name, host);
	}
	ready_all();
	assert_int_equal(given.n, 3);
}

/* Blocks as a cluster of one gives them. What is selected 50 ms ahead is made up for, and no more than that. */
static void a_high_rate_is_kept_in_the_mean(void **state)
{
	(void)state;
	begin_in_cluster("transport smtp { destination_concurrency_limit = 1 host_connection_limit "
			 "= 0 connection_max_age = 0 connection_max_messages = 0 }\n"
			 "flow a.test { rate = 100/s }");
	for (uint64_t id = 1; id <= 400; id++) {
		arrive(mail(id, "x@a.test", "x@dest.test"));
		if (id == 1)
			answer("dest.test", "10 mx.test 192.0.2.1");
	}
	int n = 0;
	int64_t next_ms = clock_ms;
	for (int ms = 0; ms < 2 * SECOND; ms++) {
		while (given.n > 0) {
			n++;
			done(given_at(0), VERDICT_SENT);
		}
		while (told.n > 0)
			forget(take(&told, 0));
		if (wants.n > 0) {
			struct sharing_want *w = take(&wants, 0);
			next_ms = next_ms > clock_ms ? next_ms : clock_ms;
			int64_t most = next_ms > clock_ms + 100 ? 0 : w->n < 10 ? w->n : 10;
			grant(w, most, next_ms, clock_ms + 10);
			next_ms += 10 * most;
		}
		pass(1);
	}
	assert_in_range(n, 196, 208);
}

/* Whatever is charged and given back, granted or not: no more is sent than was granted, and the order holds. */
static void no_more_is_sent_than_was_granted(void **state)
{
	(void)state;
	uint64_t seed = 88172645463325252u, id = 0;
	int64_t granted = 0, sent = 0;
	begin_in_cluster(ONE_EACH "flow a.test { rate = 20/s }");
	for (int step = 0; step < 6000; step++) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		char to[40];
		snprintf(to, sizeof to, "x@%d.test", (int)((seed >> 20) % 5));
		int64_t some = (int64_t)((seed >> 30) % 4);
		if (seed % 10 < 4) {
			arrive(mail(++id, (seed >> 8) % 3 ? "x@a.test" : "x@b.test", to));
		} else if (seed % 10 < 6 && given.n > 0) {
			struct delivery *d = given_at((int)((seed >> 8) % (uint64_t)given.n));
			sent += strcmp(d->sender, "x@a.test") == 0;
			done(d, VERDICT_SENT);
		} else if (seed % 10 == 6 && given.n > 0) {
			put_back(given_at((int)((seed >> 8) % (uint64_t)given.n)));
		} else if (seed % 10 == 7 && wants.n > 0) {
			struct sharing_want *w = take(&wants, 0);
			int64_t n = some < w->n ? some : w->n;
			granted += n;
			grant(w, n, clock_ms + (int64_t)((seed >> 8) % 90), clock_ms + 100);
		} else if (seed % 50 == 9) {
			cancel(id);
		} else {
			pass_time((int64_t)((seed >> 8) % 200));
		}
		while (questions.n > 0) {
			char name[40], host[60];
			snprintf(name, sizeof name, "%s",
				 ((struct resolve *)questions.note[0])->name);
			snprintf(host, sizeof host, "10 mx-%s 192.0.2.%d", name, *name);
			answer(name, host);
		}
		ready_all();
		while (told.n > 0)
			forget(take(&told, 0));
		assert_true(sent <= granted);
	}
	assert_true(sent > 300 && sent + 20 > granted);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish_in_cluster)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_sent_that_was_not_reserved),
		TEST(what_comes_back_unselected_is_used_and_not_asked_for_again),
		TEST(what_is_reserved_is_not_lost_while_its_mail_waits_for_a_place),
		TEST(without_mail_nothing_is_asked_and_the_flow_forgotten),
		TEST(a_reload_changes_the_rate_at_once),
		TEST(a_high_rate_is_kept_in_the_mean),
		TEST(no_more_is_sent_than_was_granted),
	};
	return RUN(tests);
}
