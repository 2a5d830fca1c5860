/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "cmd/text/shape_print.c"

#include "base/mem.h"

static struct shape *sample(int64_t total, const char *name)
{
	struct shape *s = shape_new();
	s->buckets = 3;
	s->all.total = total;
	s->all.count = mem_zalloc(3 * sizeof(int64_t));
	s->all.count[2] = total;
	s->row = mem_zalloc(sizeof *s->row);
	s->n = 1;
	s->row[0] = (struct shape_row){.name = mem_strdup(name), .total = total, .subdomains = 6};
	s->row[0].count = mem_zalloc(3 * sizeof(int64_t));
	s->row[0].count[2] = total;
	return s;
}

static void is_row(const char *name, bool color, const char *expected)
{
	struct shape *s = sample(7, name);
	struct shape_view v;
	struct buf to;
	buf_init(&to);
	shape_view_init(&v, s, 5, 31, color); /* 18 columns are left for the name */
	shape_print_row(&to, &v, &s->row[0]);
	assert_string_equal(buf_cstr(&to), expected);
	buf_fini(&to);
	shape_free(&s);
}

static void columns_have_room_for_their_title_and_their_total(void **state)
{
	(void)state;
	struct shape *s = sample(12345, "a.test");
	struct shape_view v;
	struct buf to;
	buf_init(&to);
	shape_view_init(&v, s, 5, 40, false);
	shape_print_heading(&to, &v);
	shape_print_row(&to, &v, &s->row[0]);
	assert_string_equal(buf_cstr(&to), "                           T  5 10   10+\n"
					   "                 TOTAL 12345  0  0 12345\n"
					   "                a.test 12345  0  0 12345\n");
	buf_fini(&to);
	shape_free(&s);
}

static void of_a_long_name_the_end_is_shown(void **state)
{
	(void)state;
	is_row("123456789.123.test", false, "123456789.123.test  7  0  0   7\n");
	is_row("0123456789.123.test", false, "+23456789.123.test  7  0  0   7\n");
	is_row(".0123456789.123.test", false, ".+3456789.123.test  7  0  0   7\n");
}

static void the_null_sender_is_mailer_daemon(void **state)
{
	(void)state;
	is_row("", false, "     MAILER-DAEMON  7  0  0   7\n");
}

static void controls_in_a_name_do_not_reach_a_terminal(void **state)
{
	(void)state;
	is_row("\033[2J.test", false, "         ?[2J.test  7  0  0   7\n");
}

static void weight_is_colour_when_that_is_wanted(void **state)
{
	(void)state;
	is_row("a.test", true,
	       "\033[1;31m            a.test\033[0m\033[1;31m  7\033[0m\033[2m  0\033[0m"
	       "\033[2m  0\033[0m\033[1;31m   7\033[0m\n");
}

static void an_object_tells_the_limits_of_its_buckets(void **state)
{
	(void)state;
	struct shape *s = sample(7, ".parent.test");
	struct shape_view v;
	struct buf to;
	buf_init(&to);
	shape_view_init(&v, s, 0.5, 80, false);
	shape_print_json(&to, &v, &s->row[0]);
	assert_string_equal(buf_cstr(&to),
			    "{\"domain\":\".parent.test\",\"total\":7,\"subdomains\":6,\"ages\":["
			    "{\"below_minutes\":0.5,\"count\":0},{\"below_minutes\":1,\"count\":0},"
			    "{\"below_minutes\":null,\"count\":7}]}\n");
	buf_fini(&to);
	shape_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_have_room_for_their_title_and_their_total),
		cmocka_unit_test(of_a_long_name_the_end_is_shown),
		cmocka_unit_test(the_null_sender_is_mailer_daemon),
		cmocka_unit_test(controls_in_a_name_do_not_reach_a_terminal),
		cmocka_unit_test(weight_is_colour_when_that_is_wanted),
		cmocka_unit_test(an_object_tells_the_limits_of_its_buckets),
	};
	return RUN(tests);
}
