/* SPDX-License-Identifier: ISC */
/* Whose turn it is, among flows: what decision 0129 promises, over random loads with a seed. */
#include "tests/unit/qmgr/world.h"

#include "qmgr/message.h"
#include "qmgr/sched/flow.h"
#include "qmgr/sched/job.h"

enum { FLOWS = 8, SEEDS = 60, STEPS = 400 };

/* One connection to each site, one delivery at a time, an entry a recipient. */
#define ONE_EACH                                                                                   \
	"destination_concurrency_limit = 1 initial_destination_concurrency = 1 "                   \
	"destination_recipient_limit = 1 connection_max_messages = 0 connection_max_age = 0 "

static uint64_t chance;

static int below(int n)
{
	chance ^= chance << 13;
	chance ^= chance >> 7;
	chance ^= chance << 17;
	return (int)(chance % (uint64_t)n);
}

/* The message is of flow f1.test for 1; its number tells it, too. */
static uint64_t last_id;

static uint64_t send_as(int flow, const char *to)
{
	char sender[40];
	snprintf(sender, sizeof sender, "x@f%d.test", flow);
	uint64_t id = ++last_id * FLOWS + (uint64_t)flow;
	arrive(mail(id, sender, to));
	answer_each();
	ready_all();
	return id;
}

static int flow_of(const struct delivery *d)
{
	return (int)(d->id % FLOWS);
}

static void forget_what_was_told(void)
{
	while (told.n > 0)
		forget(take(&told, 0));
}

/* What is under way at the site of this domain, or NULL. */
static struct delivery *under_way(const char *domain)
{
	for (int i = 0; i < given.n; i++)
		if (strcmp(strchr(given_at(i)->rcpt[0].address, '@') + 1, domain) == 0)
			return given_at(i);
	return NULL;
}

static void answer_at(const char *domain)
{
	done(under_way(domain), VERDICT_SENT);
	ready_all();
	forget_what_was_told();
}

/* --- fair at a site */

static int weight[FLOWS], waiting[FLOWS];
static double ahead[FLOWS][FLOWS], most[FLOWS][FLOWS], least[FLOWS][FLOWS];

static void begin_weights(void)
{
	struct buf conf;
	buf_init(&conf);
	buf_puts(&conf, "transport smtp { " ONE_EACH "}\n");
	for (int f = 0; f < FLOWS; f++) {
		weight[f] = below(2) ? 1 : 1 + below(10);
		waiting[f] = 0;
		buf_printf(&conf, "flow \"f%d.test\" { weight = %d }\n", f, weight[f]);
	}
	memset(ahead, 0, sizeof ahead);
	memset(most, 0, sizeof most);
	memset(least, 0, sizeof least);
	begin(buf_cstr(&conf));
	buf_fini(&conf);
}

/* In every interval in which both have mail: so it holds if it does between any two moments of the time since they have. */
static void pair_is_served_fairly(int f, int g, int served)
{
	double *now = &ahead[f][g];
	if (waiting[f] == 0 || waiting[g] == 0) {
		*now = most[f][g] = least[f][g] = 0;
		return;
	}
	*now += served == f ? 1.0 / weight[f] : served == g ? -1.0 / weight[g] : 0;
	most[f][g] = *now > most[f][g] ? *now : most[f][g];
	least[f][g] = *now < least[f][g] ? *now : least[f][g];
	double bound = 1.0 / weight[f] + 1.0 / weight[g];
	if (most[f][g] - least[f][g] > bound + 1e-4) {
		print_error("weights %d and %d are %f apart\n", weight[f], weight[g],
			    most[f][g] - least[f][g]);
		fail();
	}
}

static void count_service(int served)
{
	for (int f = 0; f < FLOWS; f++)
		for (int g = 0; g < f; g++)
			pair_is_served_fairly(f, g, served);
	waiting[served]--;
	assert_true(waiting[served] >= 0);
}

/* The one that is under way now was not before: it has been served. */
static void look_who_is_served(uint64_t before)
{
	struct delivery *d = under_way("a.test");
	if (d && d->id != before)
		count_service(flow_of(d));
}

static void one_step(void)
{
	struct delivery *d = under_way("a.test");
	uint64_t before = d ? d->id : 0;
	int n = below(3) ? 0 : 1 + below(6), f = below(FLOWS);
	while (n-- > 0) {
		waiting[f]++;
		send_as(f, "x@a.test");
		look_who_is_served(before);
		d = under_way("a.test");
		before = d->id;
	}
	if (d && below(8)) {
		answer_at("a.test");
		look_who_is_served(before);
	}
}

static void flows_with_mail_for_a_site_share_it_by_their_weights(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		if (seed > 1)
			finish(state);
		chance = seed * UINT64_C(0x9e3779b97f4a7c15);
		begin_weights();
		for (int i = 0; i < STEPS; i++)
			one_step();
	}
}

static void who_sends_one_at_a_time_has_no_more_than_its_weight(void **state)
{
	(void)state;
	int of_light = 0;
	begin("transport smtp { " ONE_EACH "}\nflow \"f1.test\" { weight = 10 }");
	for (int i = 0; i < 600; i++)
		send_as(1, "x@a.test");
	send_as(2, "x@a.test");
	for (int i = 0; i < 500; i++) {
		if (flow_of(under_way("a.test")) == 2) {
			of_light++;
			answer_at("a.test");
			send_as(2, "x@a.test");
		} else {
			answer_at("a.test");
		}
	}
	assert_in_range(of_light, 44, 47);
}

/* --- nobody waits for a flood */

static void a_newcomer_is_next_whatever_a_flood_has_waiting(void **state)
{
	(void)state;
	begin("transport smtp { " ONE_EACH "}");
	for (int i = 0; i < 1000; i++)
		send_as(1, "x@a.test");
	for (int i = 0; i < 50; i++) {
		for (int before = below(7); before >= 0; before--)
			answer_at("a.test");
		uint64_t mine = send_as(2, "x@a.test");
		answer_at("a.test");
		assert_int_equal(under_way("a.test")->id, mine);
	}
}

/* Its second message waits for one of each. */
static void who_has_several_waits_for_one_of_each_other_flow(void **state)
{
	(void)state;
	begin("transport smtp { " ONE_EACH "}");
	for (int i = 0; i < 100; i++)
		for (int f = 1; f <= 4; f++)
			send_as(f, "x@a.test");
	for (int i = 0; i < 40; i++)
		answer_at("a.test");
	for (int i = 0; i < 3; i++)
		send_as(5, "x@a.test");
	char order[20] = "";
	for (size_t i = 0; i < 11; i++) {
		answer_at("a.test");
		order[i] = flow_of(under_way("a.test")) == 5 ? 'x' : '.';
	}
	assert_string_equal(order, "x....x....x");
}

/* --- local */

static void who_waits_at_a_slow_site_is_not_behind_at_another(void **state)
{
	(void)state;
	begin("transport smtp { " ONE_EACH "}");
	for (int i = 0; i < 100; i++) {
		send_as(1, "x@slow.test");
		send_as(2, "x@fast.test");
		send_as(1, "x@fast.test");
	}
	int of_first = 0;
	for (int i = 0; i < 100; i++) {
		of_first += flow_of(under_way("fast.test")) == 1;
		answer_at("fast.test");
	}
	assert_in_range(of_first, 49, 51);
	/* Neither is it ahead, for all that it has not had. */
	assert_int_equal(flow_of(under_way("slow.test")), 1);
}

/* --- work conserving, and inside a flow as ever */

static void the_order_within_a_flow_is_by_age(void **state)
{
	(void)state;
	begin("transport smtp { " ONE_EACH "}");
	uint64_t last[FLOWS] = {0};
	for (int i = 0; i < 200; i++)
		send_as(below(FLOWS), "x@a.test");
	for (int i = 0; i < 200; i++) {
		struct delivery *d = under_way("a.test");
		assert_non_null(d); /* nothing is idle while anything waits */
		assert_true(d->id > last[flow_of(d)]);
		last[flow_of(d)] = d->id;
		answer_at("a.test");
	}
	assert_null(under_way("a.test"));
}

static void send_list_as(int flow, const char *to, int n)
{
	char sender[40];
	snprintf(sender, sizeof sender, "x@f%d.test", flow);
	struct envelope *e = mail(++last_id * FLOWS + (uint64_t)flow, sender, NULL);
	for (int i = 0; i < n; i++)
		envelope_add(e, to);
	arrive(e);
	answer_each();
	ready_all();
}

/* Slots that a list has saved are for its own flow's mail. */
static void nobody_slips_past_a_list_of_another_flow(void **state)
{
	(void)state;
	begin("transport smtp { " ONE_EACH "delivery_slot_cost = 2 delivery_slot_discount = 0 "
	      "delivery_slot_loan = 0 minimum_delivery_slots = 0 }");
	send_list_as(1, "x@a.test", 40);
	for (int i = 0; i < 20; i++)
		answer_at("a.test");
	send_list_as(2, "x@a.test", 3);
	char order[20] = "";
	for (size_t i = 0; i < 7; i++) {
		answer_at("a.test");
		order[i] = (char)('0' + flow_of(under_way("a.test")));
	}
	assert_string_equal(order, "2121211");
	uint64_t own = send_as(1, "x@a.test");
	answer_at("a.test");
	assert_int_equal(under_way("a.test")->id, own);
}

/* --- the connections of a transport */

enum { MANY_SITES = 30 };

static void send_to_many_sites(int flow)
{
	for (int i = 0; i < MANY_SITES; i++)
		for (int k = 0; k < 20; k++) {
			char to[40];
			snprintf(to, sizeof to, "x@f%d-%d.test", flow, i);
			send_as(flow, to);
		}
}

static int under_way_of(int flow)
{
	int n = 0;
	for (int i = 0; i < given.n; i++)
		n += flow_of(given_at(i)) == flow;
	return n;
}

/* Connections that were told to end, do. */
static void end_what_ends(void)
{
	for (int i = opened.n - 1; i >= 0; i--)
		if (was_told_to_end(open_at(i)))
			close_orderly(open_at(i));
	ready_all();
}

static void answer_one(int i)
{
	done(given_at(i), VERDICT_SENT);
	end_what_ends();
	forget_what_was_told();
}

static void flows_share_the_connections_of_a_transport(void **state)
{
	(void)state;
	begin("transport smtp { " ONE_EACH "connection_limit = 12 }\n"
	      "flow \"f2.test\" { weight = 3 }");
	chance = 4711;
	send_to_many_sites(1);
	assert_int_equal(under_way_of(1), 12);
	send_to_many_sites(2);
	for (int i = 0; i < 600; i++)
		answer_one(below(given.n));
	/* Of the weights 1 and 3, for 12. */
	assert_in_range(under_way_of(1), 2, 4);
	assert_in_range(under_way_of(2), 8, 10);
	/* One that holds nothing is next when a place comes free for another site. */
	uint64_t mine = send_as(3, "x@f3-1.test");
	int answered = 0;
	while (!under_way("f3-1.test") && answered++ < 60)
		answer_one(below(given.n));
	assert_int_equal(under_way("f3-1.test")->id, mine);
	assert_in_range(answered, 0, 12);
}

/* Where neither has been served their start tags are equal. A connection is taken from a site when it has carried ten. */
static void a_newcomer_does_not_wait_for_the_site_of_a_flood_to_have_its_turn(void **state)
{
	(void)state;
	begin("transport smtp { " ONE_EACH "connection_limit = 4 }");
	chance = 4712;
	send_to_many_sites(1);
	for (int i = MANY_SITES - 5; i < MANY_SITES; i++) {
		char site[24], to[40];
		snprintf(site, sizeof site, "f1-%d.test", i);
		snprintf(to, sizeof to, "x@%s", site);
		assert_null(under_way(site));
		uint64_t mine = send_as(2, to);
		for (int n = 0; n < 4 * 10 && !under_way(site); n++)
			answer_one(below(given.n));
		assert_non_null(under_way(site));
		assert_int_equal(under_way(site)->id, mine);
	}
	destdb_check(&q->db);
}

static void a_flow_without_mail_is_forgotten(void **state)
{
	(void)state;
	begin("transport smtp { " ONE_EACH "}");
	for (int f = 1; f < FLOWS; f++)
		send_as(f, "x@a.test");
	assert_int_equal(HASH_COUNT(q->sched.flows), FLOWS - 1);
	while (under_way("a.test"))
		answer_at("a.test");
	assert_int_equal(HASH_COUNT(q->sched.flows), 0);
	assert_int_equal(q->sched.nactive, 0);
}

static void a_reload_changes_weights(void **state)
{
	(void)state;
	begin("transport smtp { " ONE_EACH "}");
	for (int i = 0; i < 200; i++) {
		send_as(1, "x@a.test");
		send_as(2, "x@a.test");
	}
	reload("transport smtp { " ONE_EACH "}\nflow \"*\" { weight = 2 }\n"
	       "flow \"f2.test\" { weight = 8 }");
	int of_second = 0;
	for (int i = 0; i < 100; i++) {
		answer_at("a.test");
		of_second += flow_of(under_way("a.test")) == 2;
	}
	assert_in_range(of_second, 79, 81);
}

#define TEST(name) cmocka_unit_test_teardown(name, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(flows_with_mail_for_a_site_share_it_by_their_weights),
		TEST(who_sends_one_at_a_time_has_no_more_than_its_weight),
		TEST(a_newcomer_is_next_whatever_a_flood_has_waiting),
		TEST(who_has_several_waits_for_one_of_each_other_flow),
		TEST(who_waits_at_a_slow_site_is_not_behind_at_another),
		TEST(the_order_within_a_flow_is_by_age),
		TEST(nobody_slips_past_a_list_of_another_flow),
		TEST(flows_share_the_connections_of_a_transport),
		TEST(a_newcomer_does_not_wait_for_the_site_of_a_flood_to_have_its_turn),
		TEST(a_flow_without_mail_is_forgotten),
		TEST(a_reload_changes_weights),
	};
	return RUN(tests);
}
