/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "base/mem.h"
#include "cmd/text/flow_print.c"
#include "cmd/text/flow_sums.c"
#include "cmd/text/flow_tell.c"
#include "cmd/text/json_put.c"
#include "cmd/text/moment.c"

#include <stdio.h>

static struct cluster_said said[3];
static struct cluster_inquiry inquiry = {.n = 3, .said = said};
static struct flow_sums sums;
static struct buf out;

/* Of the queue's commands, which take the whole program with them. */
const char *queue_time_span(int64_t ms, char text[16])
{
	snprintf(text, 16, "%ds", (int)(ms / 1000));
	return text;
}

static int setup(void **state)
{
	(void)state;
	said[0] = (struct cluster_said){.node = "alpha", .state = "working", .answered = true};
	said[1] = (struct cluster_said){.node = "beta", .state = "working", .answered = true};
	said[2] = (struct cluster_said){.node = "gamma", .state = "gone", .seen_ms = 6000};
	buf_init(&out);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		buf_fini(&said[i].text);
	buf_fini(&out);
	return 0;
}

static void tell(int node, int64_t sending, int n, struct flow_row row[])
{
	struct flow_command c = {.sending = sending, .nrow = n, .row = row};
	flow_tell(&said[node].text, &c, CLUSTER_TEXT_MAX);
}

static void says(void (*how)(struct buf *, const struct flow_sums *), const char *what)
{
	buf_clear(&out);
	flow_sums_init(&sums, &inquiry);
	how(&out, &sums);
	if (strcmp(buf_cstr(&out), what) != 0)
		print_error("this:\n%s\nis not:\n%s\n", buf_cstr(&out), what);
	assert_string_equal(buf_cstr(&out), what);
	flow_sums_fini(&sums);
}

static void list(struct buf *to, const struct flow_sums *all)
{
	flow_sums_list(to, all, 100000);
}

static void a_flow_is_listed_once_with_the_sums(void **state)
{
	struct flow_row at_alpha[] = {{.name = "red",
				       .weight = 2,
				       .rate = {10, 1000},
				       .messages = 3,
				       .sending = 1,
				       .oldest_ms = 60000,
				       .last_ms = 90000,
				       .today = {5, 1, 1},
				       .hour = {4, 1, 0}}};
	struct flow_row at_beta[] = {{.name = "red",
				      .weight = 2,
				      .messages = 4,
				      .sending = 2,
				      .oldest_ms = 40000,
				      .last_ms = 80000,
				      .today = {7, 0, 0},
				      .hour = {7, 0, 0}},
				     {.name = "blue", .weight = 1, .messages = 9}};
	(void)state;
	tell(0, 1, 1, at_alpha);
	tell(1, 5, 2, at_beta);
	says(list, "blue active weight=1 messages=9 sending=0 share=0% sent=0 deferred=0 refused=0"
		   " sent_hour=0 deferred_hour=0 refused_hour=0 nodes=1\n"
		   "red active weight=2 messages=7 sending=3 share=50% sent=12 deferred=1 refused=1"
		   " sent_hour=11 deferred_hour=1 refused_hour=0 oldest=60s rate=10/s nodes=2\n"
		   "-- 2 of 3 nodes have answered\n"
		   "gamma has not answered: gone, seen 6.0s before\n");
}

static void a_suspension_is_of_all_or_names_its_nodes(void **state)
{
	struct flow_row at_alpha[] = {{.name = "all", .suspended = true},
				      {.name = "one", .suspended = true, .until_ms = 5}};
	struct flow_row at_beta[] = {{.name = "all", .suspended = true, .until_ms = 7},
				     {.name = "one"}};
	(void)state;
	tell(0, 0, 2, at_alpha);
	tell(1, 0, 2, at_beta);
	said[2].answered = true;
	flow_sums_init(&sums, &inquiry);
	assert_false(sums.table->row.suspended); /* not by gamma */
	assert_int_equal(sums.table->row.until_ms, 0);
	flow_sums_fini(&sums);
	said[2].answered = false;
	says(flow_sums_json,
	     "{\"flow\":\"all\",\"suspended\":true,\"weight\":0,\"messages\":0,\"sending\":0,"
	     "\"sending_all\":0,\"sent\":0,\"deferred\":0,\"refused\":0,"
	     "\"hour\":{\"sent\":0,\"deferred\":0,\"refused\":0},"
	     "\"yesterday\":{\"sent\":0,\"deferred\":0,\"refused\":0},"
	     "\"nodes\":[\"alpha\",\"beta\"],\"suspended_at\":[\"alpha\",\"beta\"]}\n"
	     "{\"flow\":\"one\",\"suspended\":false,\"weight\":0,\"messages\":0,\"sending\":0,"
	     "\"sending_all\":0,\"sent\":0,\"deferred\":0,\"refused\":0,"
	     "\"hour\":{\"sent\":0,\"deferred\":0,\"refused\":0},"
	     "\"yesterday\":{\"sent\":0,\"deferred\":0,\"refused\":0},\"until\":0.005,"
	     "\"nodes\":[\"alpha\",\"beta\"],\"suspended_at\":[\"alpha\"]}\n"
	     "{\"node\":\"alpha\",\"answered\":true,\"state\":\"working\",\"seen\":0.000}\n"
	     "{\"node\":\"beta\",\"answered\":true,\"state\":\"working\",\"seen\":0.000}\n"
	     "{\"node\":\"gamma\",\"answered\":false,\"state\":\"gone\",\"seen\":6.000}\n");
}

static void the_busiest_are_told_where_there_is_room_for_some(void **state)
{
	struct flow_row row[] = {{.name = "small", .messages = 1},
				 {.name = "large", .messages = 2}};
	struct flow_command c = {.sending = 3, .nrow = 2, .row = row};
	(void)state;
	flow_tell(&said[0].text, &c, 100 + strlen("large\tmessages=2\n"));
	assert_string_equal(buf_cstr(&said[0].text), "large\tmessages=2\n\tsending=3\tleft=1\n");
	said[1].answered = false;
	flow_sums_init(&sums, &inquiry);
	list(&out, &sums);
	assert_non_null(strstr(buf_cstr(&out), "1 times a node has left out a flow"));
	flow_sums_fini(&sums);
}

static void what_makes_no_sense_is_passed_over(void **state)
{
	(void)state;
	buf_puts(&said[0].text, "\x1b[2J\tmessages=1\nred\tmessages=-5\tsent=99999999999999999999\t"
				"later=7\tdeferred\t=\tsent=2\n\n\t\t\nred\tsuspended=0\tsent=1");
	said[1].answered = false;
	says(list, "red active weight=0 messages=0 sending=0 share=0% sent=2 deferred=0 refused=0"
		   " sent_hour=0 deferred_hour=0 refused_hour=0 nodes=1\n"
		   "-- 1 of 3 nodes have answered\n"
		   "beta has not answered: working, seen 0.0s before\n"
		   "gamma has not answered: gone, seen 6.0s before\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_flow_is_listed_once_with_the_sums),
		TEST(a_suspension_is_of_all_or_names_its_nodes),
		TEST(the_busiest_are_told_where_there_is_room_for_some),
		TEST(what_makes_no_sense_is_passed_over),
	};
	return RUN(tests);
}
