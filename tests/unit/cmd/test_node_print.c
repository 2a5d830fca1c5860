/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cmd/text/json_put.c"
#include "cmd/text/node_print.c"
#include "cmd/text/node_rows.c"

#include <string.h>

static struct node_text text[] = {
	{.name = "alpha",
	 .version = "1.0",
	 .state = "working",
	 .seen_ms = 400,
	 .count = {[NODE_RECEIVED] = 7, [NODE_ACTIVE] = 2, [NODE_HELD] = 1}},
	{.name = "gamma", .version = "1.0", .state = "gone", .count = {[NODE_RECEIVED] = 5}},
};
static struct node_text dead = {.name = "beta",
				.version = "1.0",
				.state = "gone",
				.count = {[NODE_RECEIVED] = 9, [NODE_WAITING] = 4}};
static struct node_epoch epoch[] = {
	{.name = "alpha", .state = "up", .epoch = 3, .by = "alpha", .number = 1},
	{.name = "beta", .state = "adopted", .epoch = 8, .by = "alpha", .number = 2},
};
static struct cluster_view redis;
static struct node_view nats;
static struct buf out;

static int setup(void **state)
{
	(void)state;
	redis = (struct cluster_view){.redis = true, .n = 2, .node = text};
	epoch[0].since_ms = epoch[1].since_ms = clock_up_ms();
	nats = (struct node_view){.there = true, .n = 2, .node = epoch};
	buf_init(&out);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_fini(&out);
	return 0;
}

static void print(const struct cluster_view *r, const struct node_view *n,
		  void (*how)(struct buf *, const struct node_rows *))
{
	struct node_rows all;
	buf_clear(&out);
	node_rows_init(&all, r, n);
	how(&out, &all);
	node_rows_fini(&all);
}

static void says(const char *what)
{
	if (!strstr(buf_cstr(&out), what))
		print_error("not in:\n%s\n%s\n", buf_cstr(&out), what);
	assert_non_null(strstr(buf_cstr(&out), what));
}

static void a_row_has_what_either_engine_knows(void **state)
{
	(void)state;
	print(&redis, &nats, node_print_list);
	says("alpha  working  1.0            0.4s          7          3       3 up       alpha\n"
	     "beta   adopted  -              0.0s          -          -       8 adopted  alpha\n"
	     "gamma  gone     1.0            0.0s          5          0       - -        -\n"
	     "-- 3                                        12          3\n");
	assert_null(strstr(buf_cstr(&out), "away"));
	print(&redis, &nats, node_print_json);
	says("{\"node\":\"alpha\",\"state\":\"working\",\"version\":\"1.0\",\"seen\":0.400,"
	     "\"received\":7,");
	says("\"queue\":\"up\",\"by\":\"alpha\",\"epoch\":3,");
	says("{\"node\":\"beta\",\"state\":\"adopted\",\"version\":null,\"seen\":null,"
	     "\"received\":null,");
	says("\"queue\":null,\"by\":null,\"epoch\":null,\"silent_ms\":null,\"number\":null}\n");
}

static void one_engine_alone_says_what_it_knows(void **state)
{
	(void)state;
	print(NULL, &nats, node_print_list);
	says("alpha  up       -              0.0s          -          -       3 up       alpha\n");
	says("-- 2                                         -          -\n");
	print(&redis, NULL, node_print_list);
	says("alpha  working  1.0            0.4s          7          3       - -        -\n");
	print(NULL, NULL, node_print_json);
	assert_int_equal(buf_len(&out), 0);
}

static void mail_of_a_queue_that_another_has_counts_there(void **state)
{
	(void)state;
	struct node_text both[] = {text[0], dead};
	redis.node = both;
	print(&redis, &nats, node_print_list);
	says("beta   gone     1.0            0.0s          9          -       8 adopted  alpha\n"
	     "-- 2                                        16          3\n");
	print(&redis, &nats, node_print_json);
	says("\"received\":9,");
	says("\"queue_deferred\":null,");
	epoch[1].state = "adopting";
	print(&redis, &nats, node_print_list);
	says("-- 2                                        16          7\n");
	epoch[1].state = "adopted";
}

static void an_engine_that_is_away_is_named(void **state)
{
	(void)state;
	redis.redis = false;
	redis.n = 1;
	nats.there = false;
	print(&redis, &nats, node_print_list);
	says("beta   adopted");
	says("\nRedis is away: ");
	says("\nNATS is away: ");
}

static struct node_view *view(bool there, const char *name)
{
	struct node_view *v = mem_zalloc(sizeof *v);
	v->there = there;
	v->n = name != NULL;
	v->node = mem_zalloc(sizeof *v->node);
	v->node->name = mem_strdup(name);
	return v;
}

static void what_was_said_last_is_kept(void **state)
{
	struct node_view *kept = NULL;
	(void)state;
	node_view_keep(&kept, view(false, NULL));
	assert_int_equal(kept->n, 0);
	node_view_keep(&kept, view(true, "alpha"));
	node_view_keep(&kept, view(false, NULL));
	assert_false(kept->there);
	assert_string_equal(kept->node->name, "alpha");
	node_view_keep(&kept, view(true, "beta"));
	assert_true(kept->there);
	assert_string_equal(kept->node->name, "beta");
	node_view_free(&kept);
	assert_null(kept);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_row_has_what_either_engine_knows),
		TEST(one_engine_alone_says_what_it_knows),
		TEST(mail_of_a_queue_that_another_has_counts_there),
		TEST(an_engine_that_is_away_is_named),
		TEST(what_was_said_last_is_kept),
	};
	return RUN(tests);
}
