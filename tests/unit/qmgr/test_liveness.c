/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/world.h"
#include "tests/unit/base/sanitized.h"

#include "qmgr/dest/conn.h"
#include "qmgr/dest/remembered.h"
#include "qmgr/dest/site_name.h"
#include "qmgr/dest_command.h"
#include "qmgr/flow_command.h"
#include "qmgr/message.h"
#include "qmgr/nexthop.h"

/* Random neighbours, from a seed: whatever they do, limits hold, and once they behave every message
 * comes to its end, exactly once. In most histories some acts come far more often than others.
 *
 * FROM=n SEEDS=m for a longer run. */
enum {
	DOMAINS = 6,
	MESSAGES = 300,
	STEPS = 1500,
	LIMIT = 4,
	HOST_LIMIT = 2,
	WINDOW = 3,
	SEEDS = SANITIZED ? 12 : 60
};

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

/* The same with sources, a provider and a flow that have limits of their own. */
static const char shared_text[] =
	"transport smtp { connection_limit = 4 host_connection_limit = 2 "
	"destination_concurrency_limit = 3 initial_destination_concurrency = 2 "
	"destination_recipient_limit = 2 sources = { \"a\", \"b\" } }\n"
	"source \"a\" { address = { \"192.0.2.10\" } rate = \"30/s\" }\n"
	"source \"b\" { address = { \"192.0.2.11\" } }\n"
	"provider \"p\" { mx = { \"a.test\", \"b.test\" } connection_limit = 2 rate = \"20/s\" }\n"
	"flow \"news\" { rate = \"10/s\" }\n"
	"queue { minimal_backoff_time = 1s maximal_queue_lifetime = 10d }";

/* Put into the first transport, now and then, while it runs: what the limits do not depend on. */
static const char *const settings[] = {
	"",
	"pace = no",
	"destination_rate = \"5/s\"",
	"destination_rate_delay = 200ms",
	"connection_max_messages = 1",
	"connection_idle_timeout = 0s",
	"destination_by = domain",
	"destination_by = recipient",
	"destination_concurrency_failed_cohort_limit = 2",
	"site_patience = 0s",
	"pipeline_depth = 1",
	"destination_concurrency_positive_feedback = 0",
};

static const char *const flows[] = {"", "bulk", "news"};

/* What hosts say of a recipient, or as they close. */
static const struct {
	enum verdict_class class;
	int code;
	const char *dsn, *text;
} said[] = {
	{VERDICT_SENT, 250, "2.0.0", "taken"},
	{VERDICT_DEFERRED, 450, "4.2.0", "not now"},
	{VERDICT_DEFERRED, 421, "4.7.0", "too many connections, slow down"},
	{VERDICT_DEFERRED, 451, "4.7.1", "rate limited, try again later"},
	{VERDICT_DEFERRED, 452, "4.2.2", "the mailbox is full"},
	{VERDICT_DEFERRED, 451, "4.7.0", "your address is on a blocklist"},
	{VERDICT_DEFERRED, 421, "4.3.2", "going down"},
	{VERDICT_DEFERRED, 450, "4.7.1", "greylisted, come again in 300 seconds"},
	{VERDICT_FAILED, 550, "5.1.1", "nobody of that name"},
	{VERDICT_FAILED, 554, "5.7.1", "not you"},
	{VERDICT_IN_DOUBT, 0, "4.4.2", "no answer came"},
};

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
	const char *flow = flows[below(3)];
	e->flow = *flow ? mem_strdup(flow) : NULL;
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

static struct verdict *chance_verdict(int first)
{
	int i = first + below((int)(sizeof said / sizeof said[0]) - first);
	return verdict_new(said[i].class, said[i].code, said[i].dsn, "mx.test[192.0.2.1]:25",
			   said[i].text);
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
	o->why = well || below(2) ? NULL : chance_verdict(1);
	o->hung_up = o->why && below(2);
	o->refused = o->why && !o->was_ready && o->why->class == VERDICT_FAILED;
	post_closed(o, well || o->why ? NULL : "cut off");
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
		bool leave = c->leave;
		free(c);
		for (int i = 0; i < opened.n; i++)
			if (open_at(i)->connection == number) {
				end_this(open_at(i), !leave);
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

/* Nothing of it was decided; perhaps the host said why. */
static void return_one(struct delivery *d)
{
	if (below(2))
		d->refusal = chance_verdict(1);
	put_back(d);
}

static void back_one(bool well)
{
	if (given.n == 0)
		return;
	struct delivery *d = given_at(below(given.n));
	if (!well && below(4) == 0) {
		return_one(d);
		return;
	}
	d->began_us = clock_steady_us();
	d->ended_us = d->began_us + below(100000);
	bool alike = below(2);
	struct verdict *all = chance_verdict(0);
	for (uint32_t i = 0; i < d->nrcpt; i++)
		if (well)
			set_verdict(d, i, VERDICT_SENT);
		else if (alike)
			d->rcpt[i].verdict = verdict_ref(all);
		else if (i == 0 || below(3))
			d->rcpt[i].verdict = chance_verdict(0);
	verdict_unref(all);
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
		if (note->type == SPOOL_COMMAND) {
			struct spool_command *c = (struct spool_command *)note;
			spool_command_free(&c);
		} else {
			forget(note);
		}
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

/* An attempt that no mail waits for comes on top, and what is told to close is on its way. */
static int connections_that_count(const struct host *h)
{
	int n = 0;
	for (const struct list *l = h->conns.next; l != &h->conns; l = l->next) {
		const struct conn *c = list_entry(l, struct conn, in_host);
		n += c->state == CONN_CONNECTING || c->state == CONN_READY;
	}
	return n;
}

static void limits_hold(void)
{
	int in_sites = 0;
	assert_true(opened.n <= LIMIT);
	for (struct host *h = q->db.hosts; h; h = h->hh.next)
		assert_in_range(connections_that_count(h), 0, HOST_LIMIT);
	for (struct site *s = q->db.sites; s; s = s->hh.next) {
		assert_in_range(s->connections - s->slow - s->ending, 0, WINDOW);
		in_sites += s->connections;
	}
	assert_int_equal(in_sites, opened.n);
}

static void answer_any(void)
{
	answer_one();
}

static void find_nothing(void)
{
	if (questions.n == 0)
		return;
	char name[32];
	snprintf(name, sizeof name, "%s",
		 ((struct resolve *)questions.note[below(questions.n)])->name);
	no_answer(name, VERDICT_DEFERRED, "4.4.3");
}

static void ready_any(void)
{
	ready_one(true);
}

static void end_any(void)
{
	end_one(below(2));
}

static void back_any(void)
{
	back_one(below(2));
}

static void cancel_any(void)
{
	if (below(20) == 0)
		cancel((uint64_t)(1 + below(MESSAGES)));
}

static void pass_some_time(void)
{
	pass_time(below(600));
}

static void pass_much_time(void)
{
	pass_time(below(20) ? below(60000) : below(7200000));
}

static void slow_one(void)
{
	if (opened.n == 0)
		return;
	struct connection_open *o = open_at(below(opened.n));
	if (!is_ready(o))
		heard_of(o, (enum connection_slowness)below(CONNECTION_SILENT + 1));
	else
		heard_of(o, (enum connection_slowness)(CONNECTION_STALLED + below(4)));
}

static struct loop *asker;

static void forget_answer(void *owner, struct note *note)
{
	(void)owner;
	if (note->type == DEST_COMMAND) {
		struct dest_command *c = (struct dest_command *)note;
		dest_command_free(&c);
	} else {
		struct flow_command *c = (struct flow_command *)note;
		flow_command_free(&c);
	}
}

static void post_order(struct note *order)
{
	post(order);
	settle();
	ev_run(asker->ev, EVRUN_NOWAIT);
}

static void order_dest(enum order op, const char *name)
{
	post_order(&dest_command_new(op, name, asker, NULL)->note);
}

static void order_provider(enum order op, const char *name)
{
	struct dest_command *c = dest_command_new(op, NULL, asker, NULL);
	c->provider = mem_strdup(name);
	post_order(&c->note);
}

static void order_flow(enum order op, const char *name)
{
	post_order(&flow_command_new(op, name, asker, NULL)->note);
}

enum { NAMES = 5 };

static const char *const names[NAMES] = {"a.test", "b.test", "c.test", "d0.test", "d4.test"};

static void order_any(void)
{
	static const enum order orders[] = {ORDER_LIST, ORDER_SUSPEND, ORDER_RESUME, ORDER_RESET};
	if (below(4) == 0)
		order_flow(orders[below(4)], flows[1 + below(2)]);
	else
		order_dest(orders[below(4)], names[below(NAMES)]);
}

static const char *text_now;

/* The first transport has one setting more. */
static void change_settings(const char *setting)
{
	const char *rest = strchr(text_now, '{') + 1;
	char *text = mem_printf("%.*s %s %s\nflow \"bulk\" { share = 30%% weight = 3 }\n",
				(int)(rest - text_now), text_now, setting, rest);
	reload(text);
	free(text);
}

static void change_any(void)
{
	change_settings(settings[below((int)(sizeof settings / sizeof settings[0]))]);
}

static const struct {
	void (*act)(void);
	int weight;
} acts[] = {
	{answer_any, 16},  {ready_any, 32}, {end_any, 16},	  {back_any, 32},
	{retry_one, 16},   {cancel_any, 8}, {pass_some_time, 24}, {end_as_asked, 64},
	{find_nothing, 1}, {slow_one, 2},   {pass_much_time, 1},  {order_any, 1},
	{change_any, 1},
};

enum { ACTS = sizeof acts / sizeof acts[0], DOUBLINGS = 5 };

static int weight[ACTS];

static void weigh_acts(bool uneven)
{
	for (int i = 0; i < ACTS; i++)
		weight[i] = acts[i].weight << (uneven ? below(DOUBLINGS) : 0);
}

static void misbehave(void)
{
	int all = 0, i = 0;
	for (int k = 0; k < ACTS; k++)
		all += weight[k];
	for (int at = below(all); at >= weight[i]; i++)
		at -= weight[i];
	acts[i].act();
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

/* A site that comes back would have its pace of before, of one in minutes perhaps. */
static void forget_remembered(void)
{
	struct remembered *r, *tmp;
	HASH_ITER(hh, q->db.remembered, r, tmp)
	if (!remembered_is_provider(r))
		order_dest(ORDER_RESET, site_name_in(r->key));
}

/* What an operator has done is undone. */
static void make_peace(void)
{
	for (int i = 0; i < NAMES; i++)
		order_dest(ORDER_RESUME, names[i]);
	for (int i = 1; i < 3; i++)
		order_flow(ORDER_RESUME, flows[i]);
	order_dest(ORDER_RESET, NULL);
	forget_remembered();
	order_provider(ORDER_RESET, "p"); /* its pace may be one in minutes */
	change_settings("");
}

static void play_one(const char *text, uint64_t of)
{
	seed = of;
	memset(ended, 0, sizeof ended);
	ndeferred = 0;
	text_now = text;
	begin(text);
	asker = loop_new("asker", forget_answer, NULL, NULL);
	weigh_acts(of % 4);
	int slowness = 1 + below(8);
	uint64_t id = 0;
	for (int i = 0; i < STEPS; i++) {
		if (id < MESSAGES && below(slowness) == 0)
			new_message(++id);
		misbehave();
		limits_hold();
		hear_what_is_told();
	}
	while (id < MESSAGES)
		new_message(++id);
	make_peace();
	int steps = 0;
	while (all_ended() < MESSAGES && steps++ < 20000) {
		behave();
		limits_hold();
		hear_what_is_told();
	}
	if (all_ended() < MESSAGES)
		print_error("FROM=%d: %d of %d ended\n", (int)of, all_ended(), MESSAGES);
	for (int i = 1; i <= MESSAGES; i++)
		assert_int_equal(ended[i], 1);
	assert_null(q->messages);
	assert_int_equal(given.n, 0);
	loop_free(&asker);
	finish(NULL);
}

static void play(const char *text)
{
	const char *from = getenv("FROM"), *wanted = getenv("SEEDS");
	uint64_t first = from ? strtoull(from, NULL, 10) : 1;
	uint64_t n = wanted ? strtoull(wanted, NULL, 10) : SEEDS;
	for (uint64_t i = 0; i < n; i++)
		play_one(text, first + i);
}

static void every_message_ends_once_whatever_the_neighbours_do(void **state)
{
	(void)state;
	play(conf_text);
}

static void and_with_little_memory(void **state)
{
	(void)state;
	play(small_text);
}

static void and_with_what_destinations_share(void **state)
{
	(void)state;
	play(shared_text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_message_ends_once_whatever_the_neighbours_do),
		cmocka_unit_test(and_with_little_memory),
		cmocka_unit_test(and_with_what_destinations_share),
	};
	return RUN(tests);
}
