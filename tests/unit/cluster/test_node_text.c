/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "cluster/node_text.h"
#include "cluster/nodes.h"

#include <string.h>

static void a_node_is_read_as_it_was_written(void **state)
{
	struct node_text n = {.version = "1.2", .state = "working"}, back;
	struct buf text = {0};
	(void)state;
	for (int i = 0; i < NODE_COUNTER_COUNT; i++)
		n.count[i] = 10 + i;
	node_text_put(&text, &n);
	node_text_read(&back, "alpha", buf_cstr(&text));
	assert_string_equal(back.name, "alpha");
	assert_string_equal(back.version, "1.2");
	assert_true(node_text_alive(&back));
	assert_memory_equal(back.count, n.count, sizeof n.count);
	node_text_fini(&back);
	buf_fini(&text);
}

static void what_another_version_says_is_passed_over(void **state)
{
	struct node_text n;
	(void)state;
	node_text_read(
		&n, "beta",
		"epoch=7\t\t=\treceived=x\tversion\tsent=5\tsent_later=9\tstate=go\x1b[2Jne");
	assert_int_equal(n.count[NODE_RECEIVED], 0);
	assert_int_equal(n.count[NODE_SENT], 5);
	assert_string_equal(n.version, "");
	assert_string_equal(n.state, "go[2Jne");
	node_text_fini(&n);
}

static void a_word_is_cut(void **state)
{
	struct node_text n;
	(void)state;
	node_text_read(&n, "gamma", "version=0123456789012345678901234567890123456789\tsent=1");
	assert_int_equal(strlen(n.version), NODE_WORD_MAX - 1);
	assert_int_equal(n.count[NODE_SENT], 1);
	node_text_fini(&n);
}

/* As many nodes as are looked at have no sum that overflows. */
static void a_count_is_none_that_nobody_has(void **state)
{
	struct node_text n;
	(void)state;
	assert_true(NODE_COUNT_MAX < INT64_MAX / (4 * NODES_MAX));
	node_text_read(&n, "delta",
		       "sent=9223372036854775807\treceived=-9223372036854775808\tclients=-1\t"
		       "bounced=99999999999999999999\tdeferred=12345678901234");
	assert_int_equal(n.count[NODE_SENT], NODE_COUNT_MAX);
	assert_int_equal(n.count[NODE_BOUNCED], NODE_COUNT_MAX);
	assert_int_equal(n.count[NODE_RECEIVED], 0);
	assert_int_equal(n.count[NODE_CLIENTS], 0);
	assert_int_equal(n.count[NODE_DEFERRED], 12345678901234);
	node_text_fini(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_is_read_as_it_was_written),
		cmocka_unit_test(what_another_version_says_is_passed_over),
		cmocka_unit_test(a_word_is_cut),
		cmocka_unit_test(a_count_is_none_that_nobody_has),
	};
	return RUN(tests);
}
