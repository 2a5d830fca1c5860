/* SPDX-License-Identifier: ISC */
/* What the dispatcher makes of a site and what the admission of constraints says of it agree, over random
 * states from a seed. */
#include "tests/unit/qmgr/world.h"
#include "tests/unit/base/sanitized.h"

#include "qmgr/dest/conn.h"
#include "qmgr/dest/admission.h"
#include "qmgr/sched/selection.h"
#include "qmgr/dest/provider.h"
#include "qmgr/dest/suspend.h"
#include "qmgr/message.h"
#include "qmgr/sched/job.h"

enum { DOMAINS = 8, SEEDS = SANITIZED ? 8 : 40, STEPS = 400 };

static const char *const hosts_of[DOMAINS] = {
	"10 a.test 192.0.2.1",
	"10 a.test 192.0.2.1, 20 b.test 192.0.2.2",
	"10 b.test 192.0.2.2, 10 c.test 192.0.2.3",
	"10 other.test 192.0.2.3",
	"10 a.test 192.0.2.1, 10 b.test 192.0.2.2, 20 c.test 192.0.2.3",
	"10 d.test 192.0.2.4",
	"10 mail.test 192.0.2.4, 20 a.test 192.0.2.1",
	"10 e.test 192.0.2.5",
};

static uint64_t seed, last_id;
static struct envelope *deferred[20000];
static int ndeferred;

static int below(int n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (int)((seed >> 33) % (uint64_t)n);
}

static void new_message(void)
{
	struct envelope *e = mail(++last_id, "", NULL);
	for (int i = below(6) ? below(3) : below(15); i >= 0; i--) {
		char to[32];
		snprintf(to, sizeof to, "x%d@d%d.test", i, below(DOMAINS));
		envelope_add(e, to);
	}
	arrive(e);
}

static void answer_all(void)
{
	while (questions.n > 0) {
		char name[32];
		snprintf(name, sizeof name, "%s", ((struct resolve *)questions.note[0])->name);
		answer(name, hosts_of[name[1] - '0']);
	}
}

static void end_this(struct connection_open *o, bool well)
{
	for (int i = given.n - 1; i >= 0; i--)
		if (given_at(i)->connection == o->connection) {
			given_at(i)->returned = true;
			post_back(given_at(i));
		}
	post_closed(o, well ? NULL : "cut off");
	settle();
}

static void end_as_asked(void)
{
	while (ending.n > 0) {
		struct connection_close *c = take(&ending, 0);
		for (int i = 0; i < opened.n; i++)
			if (open_at(i)->connection == c->connection) {
				end_this(open_at(i), true);
				break;
			}
		free(c);
	}
}

static void hear(void)
{
	while (told.n > 0) {
		struct note *note = take(&told, 0);
		if (note->type == SPOOL_UNPARK) {
			asked_back((struct spool_unpark *)note, 0, 0);
			continue;
		}
		if (note->type == SPOOL_RELEASE && ((struct spool_release *)note)->envelope) {
			deferred[ndeferred++] = ((struct spool_release *)note)->envelope;
			((struct spool_release *)note)->envelope = NULL;
		}
		forget(note);
	}
}

static void back_one(void)
{
	if (given.n == 0)
		return;
	struct delivery *d = given_at(below(given.n));
	d->began_us = clock_steady_us() - 1 - below(2000000);
	d->ended_us = clock_steady_us();
	if (below(8) == 0)
		put_back(d);
	else
		done(d, below(6) ? VERDICT_SENT : below(2) ? VERDICT_DEFERRED : VERDICT_IN_DOUBT);
}

static void something_about_a_connection(void)
{
	if (opened.n == 0)
		return;
	struct connection_open *o = open_at(below(opened.n));
	switch (below(6)) {
	case 0:
	case 1:
		if (!o->was_ready) {
			o->was_ready = true;
			ready(o, 1 + below(4));
		}
		break;
	case 2:
		heard_of(o, (enum connection_slowness)below(3));
		break;
	case 3:
		end_this(o, o->was_ready && below(2));
		break;
	default:
		end_as_asked();
	}
}

static void suspend_or_resume(void)
{
	static const char *const names[] = {"a.test", "d.test", "192.0.2.2"};
	int i = below(3);
	if (!suspend_end(&q->db, names[i]) && below(3) == 0)
		suspend_begin(&q->db, names[i], i == 2 ? SUSPEND_HOST : SUSPEND_SITE, 0);
}

static void anything_happens(void)
{
	switch (below(10)) {
	case 0:
	case 1:
		new_message();
		break;
	case 2:
		answer_all();
		break;
	case 3:
	case 4:
		back_one();
		break;
	case 5:
		if (ndeferred > 0)
			arrive(deferred[--ndeferred]);
		break;
	case 6:
		if (below(8) == 0)
			suspend_or_resume();
		else
			pass_time(below(3) ? below(200) : below(20000));
		break;
	default:
		something_about_a_connection();
	}
	hear();
}

static bool for_an_event_only(enum constraint c)
{
	switch (c) {
	case CONSTRAINT_SUSPENDED:
	case CONSTRAINT_DEAD:
	case CONSTRAINT_OUT:
	case CONSTRAINT_RATE:
	case CONSTRAINT_RATE_DELAY:
	case CONSTRAINT_CONNECTING:
	case CONSTRAINT_WINDOW:
	case CONSTRAINT_SILENT:
	case CONSTRAINT_PROVIDER_RATE:
	case CONSTRAINT_PROVIDER_CONNECTION_LIMIT:
		return true;
	default:
		return false;
	}
}

static void agree(const struct site *s, uint64_t first_seed, int step)
{
	const struct peer *p = selection_first(&s->queue);
	if (!p) {
		assert_int_equal(s->queue.state, QUEUE_QUIET);
		return;
	}
	struct admission l = admission_of(s, p);
	bool same = (s->queue.state == QUEUE_PLACED) == (l.place != NULL) &&
		    (s->queue.state == QUEUE_QUIET) == for_an_event_only(l.constraint);
	if (!same)
		print_error("seed %d, step %d, %s: state %d, %s, %s\n", (int)first_seed, step,
			    s->name, (int)s->queue.state, constraint_name(l.constraint),
			    l.place ? "a place" : "no place");
	assert_true(same);
}

/* It wanted a connection when there was one to be had, and now there is none, so that a pipeline will
 * have to do; or another site has become idle that it was told of in the same round: that is seen when
 * something happens to it next. */
static bool may_go_deeper(const struct site *s)
{
	const struct conn *place = admission_of(s, selection_first(&s->queue)).place;
	return place && (queue_wants_slot(&s->queue) || !list_empty(&s->queue.in_parked) ||
			 place->site != s);
}

static bool some_may_go_deeper(void)
{
	for (const struct site *s = q->db.sites; s; s = s->hh.next)
		if (selection_first(&s->queue) && may_go_deeper(s))
			return true;
	return false;
}

/* Who is not in line for the rate of its provider waits for another reason too, and looks when that ends. */
static bool is_in_line(const struct site *s, enum constraint c)
{
	return c == CONSTRAINT_PROVIDER_RATE &&
	       (list_empty(&s->in_provider) || !s->for_rate || timer_active(&s->provider->wake));
}

/* Nothing is left that could be done now, and what waits for a time has its timer. */
static void nothing_is_left_lying(const struct site *s, uint64_t first_seed, int step)
{
	for (struct list *l = s->queue.peers.next; l != &s->queue.peers; l = l->next) {
		const struct peer *p = list_entry(l, struct peer, in_queue);
		if (peer_selectable(p) == 0)
			continue;
		struct admission x = admission_of(s, p);
		bool deeper = x.place && may_go_deeper(s);
		bool lies = x.constraint == CONSTRAINT_ORDER && !deeper &&
			    (!x.place || p == selection_first(&s->queue));
		bool other = p != selection_first(&s->queue) || !list_empty(&s->queue.in_parked);
		bool timed = other || !x.until_ms || x.until_ms <= clock_ms ||
			     (timer_active(&s->wake) && s->wake.due_ms <= x.until_ms) ||
			     is_in_line(s, x.constraint) || x.constraint == CONSTRAINT_DEAD ||
			     x.constraint == CONSTRAINT_OUT ||
			     x.constraint == CONSTRAINT_HOST_PAUSE; /* or its connections end */
		if (lies || !timed)
			print_error("seed %d, step %d, %s: %s, %s, until %d\n", (int)first_seed,
				    step, s->name, constraint_name(x.constraint),
				    x.place ? "a place" : "no place",
				    x.until_ms ? (int)(x.until_ms - clock_ms) : 0);
		assert_false(lies);
		assert_true(timed);
	}
}

static void all_look_again(void)
{
	for (struct site *s = q->db.sites; s; s = s->hh.next)
		site_touch(s);
	qmgr_thread_settle(q);
}

static void play(const char *text)
{
	for (uint64_t first = 1; first <= SEEDS; first++) {
		seed = first;
		last_id = 0;
		begin(text);
		qmgr_seed(q, first);
		for (int i = 0; i < STEPS; i++) {
			q->resting = true; /* the dispatcher does nothing while some happens */
			for (int k = below(4); k >= 0; k--)
				anything_happens();
			for (struct site *s = q->db.sites; s; s = s->hh.next)
				site_run(s);
			for (struct site *s = q->db.sites; s; s = s->hh.next) {
				site_run(s);
				agree(s, first, i);
			}
			q->resting = false;
			qmgr_thread_settle(q);
			for (struct site *s = q->db.sites; s; s = s->hh.next)
				nothing_is_left_lying(s, first, i);
			int before = opened.n, carried = given.n;
			bool deeper = some_may_go_deeper();
			all_look_again();
			if (opened.n != before || (given.n != carried && !deeper))
				print_error("seed %d, step %d: something was overlooked\n",
					    (int)first, i);
			assert_int_equal(opened.n, before);
			if (!deeper)
				assert_int_equal(given.n, carried);
			hear();
		}
		finish(NULL);
		while (ndeferred > 0)
			envelope_free(&deferred[--ndeferred]);
	}
}

static void dispatcher_and_admission_agree(void **state)
{
	(void)state;
	play("");
}

static void and_with_few_connections(void **state)
{
	(void)state;
	play("transport smtp { connection_limit = 4 host_connection_limit = 2 "
	     "destination_concurrency_limit = 3 initial_destination_concurrency = 2 "
	     "destination_recipient_limit = 2 site_patience = 2s }");
}

static void and_with_several_transports_at_full_hosts(void **state)
{
	(void)state;
	play("transport smtp { host_connection_limit = 2 site_patience = 2s }\n"
	     "transport other { like = smtp }\ntransport third { like = smtp }\n"
	     "route \"d1.test\" { transport = other }\nroute \"d2.test\" { transport = third }\n"
	     "route \"d3.test\" { transport = other }\nroute \"d4.test\" { transport = third }");
}

static void and_with_rates_and_small_shares(void **state)
{
	(void)state;
	play("transport smtp { connection_limit = 6 destination_rate = \"20/s\" "
	     "destination_recipient_limit = 1 site_patience = 2s }\n"
	     "transport slow { like = smtp destination_rate_delay = 300ms }\n"
	     "route \"d3.test\" { transport = slow }\nroute \"d6.test\" { transport = slow }\n"
	     "queue { max_message_concurrency = 1 scale_max_concurrency = 1 "
	     "message_active_limit = 60 }");
}

static void and_with_providers(void **state)
{
	(void)state;
	play("provider one { mx = { a.test, b.test } connection_limit = 3 }\n"
	     "provider two { mx = { other.test, d.test, mail.test } connection_limit = 2 rate = "
	     "\"20/s\" }\n"
	     "transport smtp { connection_limit = 6 destination_recipient_limit = 2 "
	     "site_patience = 2s }");
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(dispatcher_and_admission_agree),
		TEST(and_with_few_connections),
		TEST(and_with_providers),
		TEST(and_with_several_transports_at_full_hosts),
		TEST(and_with_rates_and_small_shares),
	};
	return RUN(tests);
}
