/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"
#include "tests/unit/base/sanitized.h"

#include "qmgr/message.h"
#include "qmgr/nexthop.h"

/* Random neighbours, from a seed: whatever they do, limits hold, and once they behave every message
 * comes to its end, exactly once. */
enum { DOMAINS = 6, MESSAGES = 300, STEPS = 1500, LIMIT = 4, HOST_LIMIT = 2, WINDOW = 3 };

static const char conf_text[] = "transport smtp { connection_limit = 4 host_connection_limit = 2 "
				"destination_concurrency_limit = 3 "
				"initial_destination_concurrency = 2 "
				"destination_recipient_limit = 2 }\n"
				"queue { minimal_backoff_time = 1s maximal_queue_lifetime = 10d }";

/* The same with little memory, few look-ups at once, two transports, and jobs that slip past. */
static const char small_text[] =
	"transport smtp { connection_limit = 3 host_connection_limit = 2 "
	"destination_concurrency_limit = 3 initial_destination_concurrency = 2 "
	"destination_recipient_limit = 2 recipient_limit = 9 extra_recipient_limit = 3 "
	"refill_limit = 2 refill_delay = 100ms delivery_slot_cost = 2 minimum_delivery_slots = 0 "
	"}\n"
	"transport other { like = smtp connection_limit = 1 destination_rate = \"20/s\" }\n"
	"route \"d3.test\" { transport = other }\n"
	"route \"d5.test\" { transport = other }\n"
	"queue { minimal_backoff_time = 1s maximal_queue_lifetime = 10d message_active_limit = 30 "
	"message_recipient_minimum = 1 message_recipient_limit = 12 router_concurrency_limit = 3 "
	"max_message_concurrency = 1 scale_max_concurrency = 1 }";

static const char *const hosts_of[DOMAINS] = {
	"10 a.test 192.0.2.1",
	"10 a.test 192.0.2.1, 20 b.test 192.0.2.2",
	"10 b.test 192.0.2.2, 10 c.test 192.0.2.3",
	"10 c.test 192.0.2.3",
	"10 a.test 192.0.2.1, 10 b.test 192.0.2.2, 20 c.test 192.0.2.3",
	"10 c.test 192.0.2.3, 10 b.test 192.0.2.2",
};

static uint64_t seed;
static int ended[MESSAGES + 1];

static int below(int n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (int)((seed >> 33) % (uint64_t)n);
}

static void new_message(uint64_t id)
{
	struct envelope *e = mail(id, "", NULL);
	for (int i = below(12) ? below(4) : below(40); i >= 0; i--) {
		char to[32];
		snprintf(to, sizeof to, "x%d@d%d.test", i, below(DOMAINS));
		envelope_add(e, to);
	}
	arrive(e);
}

static void answer_one(void)
{
	if (questions.n == 0)
		return;
	char name[32];
	snprintf(name, sizeof name, "%s",
		 ((struct resolve *)questions.note[below(questions.n)])->name);
	answer(name, hosts_of[name[1] - '0']);
}

static bool is_ready(const struct connection_open *o)
{
	return o->was_ready; /* kept here meanwhile */
}

static void ready_one(bool deep)
{
	if (opened.n == 0)
		return;
	struct connection_open *o = open_at(below(opened.n));
	if (is_ready(o))
		return;
	o->was_ready = true;
	ready(o, deep ? 1 + below(3) : 1);
}

/* A worker hands back what is on a connection before its last word. */
static void end_this(struct connection_open *o, bool well)
{
	for (int i = given.n - 1; i >= 0; i--)
		if (given_at(i)->connection == o->connection) {
			given_at(i)->returned = true;
			post_back(given_at(i));
		}
	uint64_t number = o->connection;
	post_closed(o, well ? NULL : "cut off");
	settle();
	for (int i = 0; i < given.n; i++)
		assert_true(given_at(i)->connection != number);
}

/* Workers close what they are asked to. */
static void end_as_asked(void)
{
	while (ending.n > 0) {
		struct connection_close *c = take(&ending, 0);
		uint64_t number = c->connection;
		free(c);
		for (int i = 0; i < opened.n; i++)
			if (open_at(i)->connection == number) {
				end_this(open_at(i), true);
				break;
			}
	}
}

static void end_one(bool well)
{
	if (opened.n == 0)
		return;
	struct connection_open *o = open_at(below(opened.n));
	if (!well || is_ready(o))
		end_this(o, well);
}

static void back_one(bool well)
{
	if (given.n == 0)
		return;
	struct delivery *d = given_at(below(given.n));
	if (!well && below(4) == 0) {
		put_back(d);
		return;
	}
	for (uint32_t i = 0; i < d->nrcpt; i++)
		if (well || i == 0 || below(3))
			set_verdict(d, i, well || below(2) ? VERDICT_SENT : VERDICT_DEFERRED);
	back(d);
}

/* As the spool: deferred mail comes again later. */
static struct envelope *deferred[MESSAGES];
static int ndeferred;

static void hear_what_is_told(void)
{
	while (told.n > 0) {
		struct note *note = take(&told, 0);
		if (note->type == SPOOL_RELEASE) {
			struct spool_release *r = (struct spool_release *)note;
			if (r->envelope) {
				deferred[ndeferred++] = r->envelope;
				r->envelope = NULL;
			} else {
				ended[r->id]++;
			}
		}
		forget(note);
	}
}

static void retry_one(void)
{
	if (ndeferred == 0)
		return;
	int i = below(ndeferred);
	struct envelope *e = deferred[i];
	deferred[i] = deferred[--ndeferred];
	arrive(e);
}

static void limits_hold(void)
{
	int in_sites = 0;
	assert_true(opened.n <= LIMIT);
	for (struct host *h = q->db.hosts; h; h = h->hh.next)
		assert_in_range(h->connections, h->ready, HOST_LIMIT);
	for (struct site *s = q->db.sites; s; s = s->hh.next) {
		assert_in_range(s->connections - s->slow - s->ending, 0, WINDOW);
		in_sites += s->connections;
	}
	assert_int_equal(in_sites, opened.n);
}

static void misbehave(void)
{
	if (below(3) == 0)
		end_as_asked();
	switch (below(9)) {
	case 0:
		answer_one();
		break;
	case 1:
	case 2:
		ready_one(true);
		break;
	case 3:
		end_one(below(2));
		break;
	case 4:
	case 5:
		back_one(below(2));
		break;
	case 6:
		retry_one();
		break;
	case 7:
		if (below(20) == 0)
			cancel((uint64_t)(1 + below(MESSAGES)));
		break;
	default:
		pass_time(below(600));
	}
}

static int all_ended(void)
{
	int n = 0;
	for (int id = 1; id <= MESSAGES; id++)
		n += ended[id];
	return n;
}

/* One step of neighbours at their best: idle connections are closed. */
static void behave(void)
{
	while (questions.n > 0)
		answer_one();
	ready_one(false);
	if (given.n > 0)
		back_one(true);
	else
		end_one(true);
	end_as_asked();
	retry_one();
	pass_time(100);
}

static void play(const char *text, uint64_t seeds)
{
	for (uint64_t first = 1; first <= (SANITIZED ? (seeds + 4) / 5 : seeds); first++) {
		seed = first;
		memset(ended, 0, sizeof ended);
		ndeferred = 0;
		begin(text);
		uint64_t id = 0;
		for (int i = 0; i < STEPS; i++) {
			if (id < MESSAGES && below(4) == 0)
				new_message(++id);
			misbehave();
			limits_hold();
			hear_what_is_told();
		}
		while (id < MESSAGES)
			new_message(++id);
		int steps = 0;
		while (all_ended() < MESSAGES && steps++ < 20000) {
			behave();
			limits_hold();
			hear_what_is_told();
		}
		if (all_ended() < MESSAGES)
			print_error("seed %d: %d of %d ended\n", (int)first, all_ended(), MESSAGES);
		for (int i = 1; i <= MESSAGES; i++)
			assert_int_equal(ended[i], 1);
		assert_null(q->messages);
		assert_int_equal(given.n, 0);
		finish(NULL);
	}
}

static void every_message_ends_once_whatever_the_neighbours_do(void **state)
{
	(void)state;
	play(conf_text, 60);
}

static void and_with_little_memory(void **state)
{
	(void)state;
	play(small_text, 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_ends_once_whatever_the_neighbours_do),
		cmocka_unit_test(and_with_little_memory),
	};
	return RUN(tests);
}
