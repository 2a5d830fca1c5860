/* SPDX-License-Identifier: ISC */
#include "tests/unit/smtpd/unit.h"

#include "base/conf_value.h"
#include "base/limit_value.h"
#include "base/tables.h"
#include "smtpd/limits.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MINUTE_US = 60000000, LOGINS = 100000, MEMORY_MAX = 30 << 20 };

static struct limits limits;
static struct conf_limit login, client, sender;
static struct conf conf;
static int64_t now_us;

static int setup(void **state)
{
	(void)state;
	login = (struct conf_limit){.messages = {2, 60000}, .recipients = {3, 60000}};
	client = (struct conf_limit){.messages = {4, 60000}, .action = LIMIT_REJECT};
	sender = (struct conf_limit){.messages = {1, 60000}, .action = LIMIT_HOLD};
	static char none[] = "";
	conf = (struct conf){.limit_by = {&login, &client, &sender}, .dkim_also = none};
	now_us = INT64_C(1000) * MINUTE_US;
	limits_init(&limits);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	limits_fini(&limits);
	return 0;
}

static struct limits_ruling judge(enum limit_of of, const char *l, const char *c, const char *s)
{
	struct limits_ruling r;
	const char *const name[] = {l, c, s};
	limits_judge(&limits, &conf, of, name, now_us, 1, &r);
	return r;
}

static void each_login_has_its_own_and_is_told_when(void **state)
{
	(void)state;
	assert_false(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	assert_false(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	struct limits_ruling r = judge(LIMIT_MESSAGES, "ann", NULL, NULL);
	assert_true(r.over);
	assert_int_equal(r.by, LIMIT_BY_LOGIN);
	assert_int_equal(r.action, LIMIT_DEFER);
	assert_int_equal(r.wait_ms, 30000);
	assert_false(judge(LIMIT_MESSAGES, "bob", NULL, NULL).over);
	assert_int_equal(limits_find(&limits, LIMIT_BY_LOGIN, "ann")->figures.today[LOGIN_REFUSED],
			 1);
	now_us += MINUTE_US / 2;
	assert_false(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	for (int i = 0; i < 3; i++)
		assert_false(judge(LIMIT_RECIPIENTS, "ann", "192.0.2.1", "a@x").over);
	assert_true(judge(LIMIT_RECIPIENTS, "ann", "192.0.2.1", "a@x").over);
}

static void the_strictest_of_several_counts_and_what_is_refused_costs_nobody(void **state)
{
	(void)state;
	assert_false(judge(LIMIT_MESSAGES, NULL, "192.0.2.1", "a@x").over);
	struct limits_ruling r = judge(LIMIT_MESSAGES, "ann", "192.0.2.1", "a@x");
	assert_true(r.over);
	assert_int_equal(r.action, LIMIT_HOLD);
	judge(LIMIT_MESSAGES, "ann", "192.0.2.1", "b@x");
	r = judge(LIMIT_MESSAGES, "ann", "192.0.2.1", "a@x");
	assert_int_equal(r.by, LIMIT_BY_LOGIN);
	judge(LIMIT_MESSAGES, NULL, "192.0.2.1", NULL);
	r = judge(LIMIT_MESSAGES, "ann", "192.0.2.1", "a@x");
	assert_int_equal(r.by, LIMIT_BY_CLIENT);
	assert_int_equal(r.action, LIMIT_REJECT);
	now_us += MINUTE_US / 4;
	assert_false(judge(LIMIT_MESSAGES, NULL, "192.0.2.1", NULL).over);
}

static void a_limit_that_is_wider_since_a_reload_keeps_nobody_waiting(void **state)
{
	(void)state;
	login.messages = (struct conf_rate){1, INT64_C(86400000)};
	assert_false(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	login.messages = (struct conf_rate){10, 1000};
	assert_false(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
}

static void the_suspended_stay_until_they_are_resumed(void **state)
{
	(void)state;
	limits_suspend(&limits, "eve", true);
	limits_suspend(&limits, "eve", true);
	assert_true(judge(LIMIT_MESSAGES, "eve", "192.0.2.1", NULL).suspended);
	assert_null(limits_find(&limits, LIMIT_BY_CLIENT, "192.0.2.1"));
	char name[40];
	for (int i = 0; i < LIMITS_ROWS_MAX + 10; i++) {
		snprintf(name, sizeof name, "user%d", i);
		judge(LIMIT_MESSAGES, name, NULL, NULL);
	}
	assert_true(HASH_COUNT(limits.row[LIMIT_BY_LOGIN]) <= LIMITS_ROWS_MAX);
	assert_null(limits_find(&limits, LIMIT_BY_LOGIN, "user0"));
	assert_true(judge(LIMIT_MESSAGES, "eve", NULL, NULL).suspended);
	limits_suspend(&limits, "eve", false);
	assert_false(judge(LIMIT_MESSAGES, "eve", NULL, NULL).suspended);
	limits_suspend(&limits, "nobody", false);
	assert_null(limits_find(&limits, LIMIT_BY_LOGIN, "nobody"));
}

static void only_logins_that_were_seen_count_failures_and_reset_forgets_them(void **state)
{
	(void)state;
	limits_failed(&limits, "ghost", 1);
	assert_null(limits_find(&limits, LIMIT_BY_LOGIN, "ghost"));
	judge(LIMIT_MESSAGES, "ann", NULL, NULL);
	limits_failed(&limits, "ann", 7);
	limits_accepted(&limits, "ann", 3, 1);
	const struct limits_row *r = limits_find(&limits, LIMIT_BY_LOGIN, "ann");
	assert_int_equal(r->figures.today[LOGIN_FAILURES], 1);
	assert_int_equal(r->seen_ms, 7);
	assert_int_equal(r->figures.today[LOGIN_RECIPIENTS], 3);
	judge(LIMIT_MESSAGES, "ann", NULL, NULL);
	assert_true(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	assert_true(limits_reset(&limits, "ann"));
	assert_int_equal(r->figures.today[LOGIN_FAILURES], 0);
	assert_false(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	assert_false(limits_reset(&limits, "ghost"));
}

static void clients_that_are_long_gone_are_forgotten(void **state)
{
	(void)state;
	char name[40];
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "192.0.2.%d", i);
		judge(LIMIT_MESSAGES, NULL, name, NULL);
	}
	now_us += 5 * MINUTE_US;
	for (int i = 0; i < 60; i++)
		judge(LIMIT_MESSAGES, NULL, i & 1 ? "198.51.100.1" : "198.51.100.2", NULL);
	assert_true(HASH_COUNT(limits.row[LIMIT_BY_CLIENT]) < 100);
}

static void a_hundred_thousand_logins_take_30_mb_at_most(void **state)
{
	(void)state;
	char name[40];
	size_t before = mallinfo2().uordblks;
	for (int i = 0; i < LOGINS; i++) {
		snprintf(name, sizeof name, "somebody.%d@example.org", i);
		judge(LIMIT_MESSAGES, name, NULL, NULL);
		judge(LIMIT_RECIPIENTS, name, NULL, NULL);
	}
	size_t took = mallinfo2().uordblks - before;
	print_message("%d logins: %zu bytes\n", LOGINS, took);
	assert_true(took < MEMORY_MAX);
}

static int told_n, looks, forgets;

static void on_spent(void *owner, enum limit_by by, enum limit_of of, const struct limits_row *r,
		     const struct conf_rate *rate, int64_t n)
{
	(void)owner;
	assert_int_equal(by, LIMIT_BY_LOGIN);
	assert_int_equal(of, LIMIT_MESSAGES);
	assert_string_equal(r->name, "ann");
	assert_int_equal(rate->events, login.messages.events);
	told_n += (int)n;
	looks += n == 0;
}

static void on_forget(void *owner, enum limit_by by, enum limit_of of, const struct limits_row *r)
{
	(void)owner;
	(void)by;
	(void)of;
	(void)r;
	forgets++;
}

static void what_other_nodes_let_pass_counts(void **state)
{
	(void)state;
	told_n = looks = forgets = 0;
	login.messages.events = 4;
	limits.sharing = (struct limits_sharing){on_spent, on_forget, NULL};
	assert_false(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	assert_int_equal(told_n, 1);
	/* Others have had two. One of ours has passed since. */
	assert_false(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	limits_total(&limits, LIMIT_BY_LOGIN, LIMIT_MESSAGES, "ann", &conf,
		     now_us + 3 * MINUTE_US / 4, 1);
	struct limits_ruling r = judge(LIMIT_MESSAGES, "ann", NULL, NULL);
	assert_true(r.over);
	assert_int_equal(r.wait_ms, 15000);
	assert_int_equal(looks, 1);
	judge(LIMIT_MESSAGES, "ann", NULL, NULL);
	assert_int_equal(looks, 1);
	now_us += 2 * LIMITS_LOOK_US;
	judge(LIMIT_MESSAGES, "ann", NULL, NULL);
	assert_int_equal(looks, 2);
	/* All together have had too many: that is waited for. */
	limits_total(&limits, LIMIT_BY_LOGIN, LIMIT_MESSAGES, "ann", &conf,
		     now_us + 3 * MINUTE_US / 2, 2);
	assert_int_equal(judge(LIMIT_MESSAGES, "ann", NULL, NULL).wait_ms, 45000);
	assert_int_equal(told_n, 2);
	assert_true(limits_reset(&limits, "ann"));
	assert_int_equal(forgets, LIMIT_OF_COUNT);
}

static void away_from_the_others_a_limit_is_divided(void **state)
{
	(void)state;
	int passed = 0;
	login.messages.events = 12;
	limits.parts = 3;
	for (int i = 0; i < 20; i++)
		passed += !judge(LIMIT_MESSAGES, "ann", NULL, NULL).over;
	assert_int_equal(passed, 4);
	limits.parts = 100;
	assert_false(judge(LIMIT_MESSAGES, "joe", NULL, NULL).over);
	assert_true(judge(LIMIT_MESSAGES, "joe", NULL, NULL).over);
}

/* --- rows of the tables `limits` */

static const char *fault_in_row(const char *text)
{
	static char said[200];
	struct limit_value v;
	struct buf why = {0};
	const char *at = limit_value_parse(text, &v, &why);
	snprintf(said, sizeof said, "%s: %s", at ? at : "good", at ? buf_cstr(&why) : "");
	buf_fini(&why);
	return said;
}

static void a_row_is_one_rate_or_two(void **state)
{
	(void)state;
	struct limit_value v;
	struct buf why = {0};
	assert_null(limit_value_parse("500/h  2000/d", &v, &why));
	assert_int_equal(v.messages.events, 500);
	assert_int_equal(v.messages.per_ms, 3600000);
	assert_true(v.of_recipients);
	assert_int_equal(v.recipients.events, 2000);
	assert_null(limit_value_parse("50000/d", &v, &why));
	assert_false(v.of_recipients);
	assert_null(limit_value_parse("5/d 0/d", &v, &why));
	assert_true(v.of_recipients && v.recipients.events == 0);
	assert_non_null(strstr(fault_in_row("many"), "many: must be a rate like"));
	assert_non_null(strstr(fault_in_row("5/h few"), "few: must be a rate like"));
	assert_non_null(strstr(fault_in_row("5/h 6/h 7/h"), "7/h: there is more than"));
	assert_non_null(strstr(fault_in_row("5/h defer"), "defer: must be a rate like"));
}

static void read_rows(const char *rows)
{
	char file[] = "/tmp/limits-XXXXXX";
	struct conf_faults faults = {0};
	int fd = mkstemp(file);
	assert_true(fd >= 0);
	dprintf(fd, "%s", rows);
	close(fd);
	conf_list_add(&conf.limits, file);
	conf.tables = tables_read(&conf, &(struct conf_lines){0}, &faults);
	assert_non_null(conf.tables);
	unlink(file);
}

static void forget_rows(void)
{
	tables_unref(conf.tables);
	conf_list_free(&conf.limits);
}

static void a_row_takes_the_place_of_the_section_s_numbers(void **state)
{
	(void)state;
	login.action = LIMIT_REJECT;
	read_rows("ann 1/m 0/m\nbob 4/m\n");
	assert_false(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	struct limits_ruling r = judge(LIMIT_MESSAGES, "ann", NULL, NULL);
	assert_true(r.over && r.action == LIMIT_REJECT && r.rate.events == 1);
	for (int i = 0; i < 10; i++)
		assert_false(judge(LIMIT_RECIPIENTS, "ann", NULL, NULL).over);
	for (int i = 0; i < 4; i++)
		assert_false(judge(LIMIT_MESSAGES, "bob", NULL, NULL).over);
	assert_true(judge(LIMIT_MESSAGES, "bob", NULL, NULL).over);
	for (int i = 0; i < 3; i++)
		assert_false(judge(LIMIT_RECIPIENTS, "bob", NULL, NULL).over);
	assert_true(judge(LIMIT_RECIPIENTS, "bob", NULL, NULL).over); /* the section's */
	assert_int_equal(limits_in_force(&conf, LIMIT_BY_LOGIN, "else", NULL).messages.events, 2);
	forget_rows();
}

static void without_a_section_what_is_over_a_row_is_put_off(void **state)
{
	(void)state;
	conf.limit_by[LIMIT_BY_LOGIN] = NULL;
	read_rows("ann 1/m\n");
	assert_false(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	struct limits_ruling r = judge(LIMIT_MESSAGES, "ann", NULL, NULL);
	assert_true(r.over && r.action == LIMIT_DEFER);
	for (int i = 0; i < 10; i++)
		assert_false(judge(LIMIT_MESSAGES, "bob", NULL, NULL).over);
	forget_rows();
}

static void what_a_server_says_takes_the_place_of_all_rows(void **state)
{
	(void)state;
	struct conf_faults faults = {0};
	conf_list_add(&conf.limits, "socketmap:unix:/run/map:m");
	conf.tables = tables_read(&conf, &(struct conf_lines){0}, &faults);
	assert_non_null(conf.tables);
	limits_told(&limits, "ann", "1/m", now_us);
	assert_false(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	assert_true(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	limits_told(&limits, "ann", "0/m", now_us);
	for (int i = 0; i < 10; i++)
		assert_false(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	limits_told(&limits, "bob", NULL, now_us); /* the section's */
	for (int i = 0; i < 2; i++)
		assert_false(judge(LIMIT_MESSAGES, "bob", NULL, NULL).over);
	assert_true(judge(LIMIT_MESSAGES, "bob", NULL, NULL).over);
	/* When no server has any more, what one said counts no more. */
	tables_unref(conf.tables);
	conf.tables = NULL;
	assert_true(judge(LIMIT_MESSAGES, "ann", NULL, NULL).over);
	conf_list_free(&conf.limits);
}

static void what_logins_sent_is_read_again(void **state)
{
	(void)state;
	struct buf text = {0};
	judge(LIMIT_MESSAGES, "ann at home", NULL, NULL);
	limits_accepted(&limits, "ann at home", 3, 1);
	judge(LIMIT_MESSAGES, "never sent", NULL, NULL);
	limits_suspend(&limits, "eve", true);
	judge(LIMIT_MESSAGES, "eve", NULL, NULL);
	limits_write(&limits, &text);
	limits_fini(&limits);
	limits_init(&limits);
	limits_read(&limits, buf_cstr(&text));
	limits_read(&limits, "\n1 2 x\n1 0 1 1 1 1 1 1 1 1 \n1 0 1 1 1 1 1 1 1 1");
	buf_fini(&text);
	assert_int_equal(HASH_COUNT(limits.row[LIMIT_BY_LOGIN]), 2);
	const struct limits_row *ann = limits_find(&limits, LIMIT_BY_LOGIN, "ann at home");
	assert_int_equal(ann->figures.today[LOGIN_RECIPIENTS], 3);
	assert_int_equal(ann->seen_ms, 1);
	const struct limits_row *eve = limits_find(&limits, LIMIT_BY_LOGIN, "eve");
	assert_int_equal(eve->figures.today[LOGIN_REFUSED], 1);
	assert_false(eve->suspended); /* that is kept elsewhere */
}

static void so_many_logins_are_written_and_the_latest(void **state)
{
	(void)state;
	struct buf text = {0};
	for (int i = 0; i < LIMITS_KEPT_MAX + 3; i++) {
		char name[20];
		snprintf(name, sizeof name, "user%d", i);
		judge(LIMIT_MESSAGES, name, NULL, NULL);
		limits_accepted(&limits, name, 1, 1);
	}
	limits_write(&limits, &text);
	assert_null(strstr(buf_cstr(&text), " user2\n"));
	assert_non_null(strstr(buf_cstr(&text), " user3\n"));
	buf_fini(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_login_has_its_own_and_is_told_when, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			the_strictest_of_several_counts_and_what_is_refused_costs_nobody, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			a_limit_that_is_wider_since_a_reload_keeps_nobody_waiting, setup, teardown),
		cmocka_unit_test_setup_teardown(the_suspended_stay_until_they_are_resumed, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			only_logins_that_were_seen_count_failures_and_reset_forgets_them, setup,
			teardown),
		cmocka_unit_test_setup_teardown(clients_that_are_long_gone_are_forgotten, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_other_nodes_let_pass_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(away_from_the_others_a_limit_is_divided, setup,
						teardown),
		cmocka_unit_test(a_row_is_one_rate_or_two),
		cmocka_unit_test_setup_teardown(a_row_takes_the_place_of_the_section_s_numbers,
						setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_section_what_is_over_a_row_is_put_off,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_server_says_takes_the_place_of_all_rows,
						setup, teardown),
		cmocka_unit_test_setup_teardown(what_logins_sent_is_read_again, setup, teardown),
		cmocka_unit_test_setup_teardown(so_many_logins_are_written_and_the_latest, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_hundred_thousand_logins_take_30_mb_at_most, setup,
						teardown),
	};
	return RUN(tests);
}
