/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "base/mem.h"
#include "cmd/text/explain_print.h"
#include "cmd/text/json_put.c"
#include "cmd/text/reasons.c"
#include "cmd/text/reply_words.c"

/* Nothing here is explained by the scheduler. */
void explain_print(struct buf *to, const struct explain_question *x, bool json, int64_t now_ms)
{
	(void)to;
	(void)x;
	(void)json;
	(void)now_ms;
	fail();
}

static struct sample_row row[300];
static int rows;

static const struct sample_row *message(int64_t arrived_ms, const char *to, struct verdict *last,
					int64_t stands_for)
{
	struct envelope *e = envelope_new();
	e->id = (uint64_t)++rows;
	e->arrived_ms = arrived_ms;
	e->sender = mem_strdup("s@a.test");
	envelope_add(e, to)->last = last;
	row[rows] = (struct sample_row){
		.queue = SPOOL_DEFERRED, .envelope = e, .stands_for = stands_for};
	return &row[rows];
}

static struct verdict *said(int code, const char *host, const char *text)
{
	return verdict_new(VERDICT_DEFERRED, code, "4.2.0", host, text);
}

static int let_go(void **state)
{
	(void)state;
	for (int i = 1; i <= rows; i++)
		envelope_free(&row[i].envelope);
	rows = 0;
	return 0;
}

static int count(const char *text, const char *part)
{
	int n = 0;
	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

static void what_is_to_be_sent_later_is_a_reason_of_its_own(void **state)
{
	(void)state;
	struct buf out = {0};
	struct reasons *r = reasons_new();
	reasons_add(r, message(500, "x@a.test", NULL, 1), NULL);
	for (int i = 0; i < 2; i++) {
		struct envelope *e = message(400, "x@a.test", NULL, 1)->envelope;
		e->due_ms = e->not_before_ms = 9000;
		reasons_add(r, &row[rows], NULL);
	}
	reasons_print(&out, r, REASONS_OLDEST, 10);
	const char *text = buf_cstr(&out);
	assert_int_equal(count(text, "\"queue\":\"deferred\""), 2);
	assert_int_equal(count(text, "\"messages\":2,\"oldest_ms\":400,\"due_ms\":9000"), 1);
	assert_int_equal(count(text, "\"constraint\":\"scheduled\",\"says\":\"not to be sent yet"),
			 1);
	assert_int_equal(count(text, "\"why\":null"), 1);
	reasons_free(&r);
	buf_fini(&out);
}

static void what_differs_by_ids_and_addresses_only_is_one_reason(void **state)
{
	(void)state;
	struct buf out = {0};
	struct reasons *r = reasons_new();
	reasons_add(r, message(500, "x@a.test", said(450, "h[192.0.2.1]:25", "busy (id AB12)"), 1),
		    NULL);
	reasons_add(r, message(300, "y@b.test", said(450, "h[192.0.2.2]:25", "busy (id C9)"), 7),
		    NULL);
	reasons_add(r, message(400, "z@c.test", said(450, "", "busy (id nothing)"), 1), NULL);
	reasons_add(r, message(100, "z@c.test", said(451, "", "busy (id 1)"), 1), NULL);
	reasons_print(&out, r, REASONS_OLDEST, 10);
	const char *text = buf_cstr(&out);
	assert_int_equal(count(text, "\"queue\":"), 3);
	const char *second = strstr(text, "\"messages\":8,\"oldest_ms\":300");
	assert_non_null(second);
	assert_true(second > strstr(text, "\"oldest_ms\":100"));
	assert_non_null(strstr(second, "said 450 4.2.0 busy (id C9)")); /* the oldest's words */
	assert_non_null(strstr(second, "[\"a.test\",\"b.test\"],\"more_domains\":false"));
	buf_clear(&out);
	reasons_print(&out, r, REASONS_MOST, 1);
	assert_int_equal(count(buf_cstr(&out), "\"queue\":"), 1);
	assert_non_null(strstr(buf_cstr(&out), "\"messages\":8,"));
	reasons_free(&r);
	buf_fini(&out);
}

static void a_message_counts_once_for_each_of_its_reasons(void **state)
{
	(void)state;
	struct buf out = {0};
	struct reasons *r = reasons_new();
	const struct sample_row *m = message(500, "x@a.test", said(450, "", "one"), 3);
	envelope_add(m->envelope, "y@a.test")->last = said(450, "", "one");
	envelope_add(m->envelope, "z@a.test")->last = said(450, "", "two <b>");
	envelope_add(m->envelope, "done@a.test")->done = true;
	envelope_add(m->envelope, "new@a.test");
	reasons_add(r, m, NULL);
	reasons_print(&out, r, REASONS_OLDEST, 10);
	assert_int_equal(count(buf_cstr(&out), "\"messages\":3,"), 3);
	assert_int_equal(count(buf_cstr(&out), "\"says\":null"), 1);
	reasons_free(&r);
	buf_fini(&out);
}

static void only_those_of_a_destination_are_wanted(void **state)
{
	(void)state;
	struct buf out = {0};
	char host[] = "h[192.0.2.1]:25", domain[] = "a.test", more[] = "xn--bcher-kva.test",
	     other[] = "0.test";
	char *hosts[] = {host}, *domains[] = {more, domain, other};
	struct reasons_filter f = {hosts, 1, domains, 3};
	reasons_filter_sort(&f);
	struct reasons *r = reasons_new();
	reasons_add(r, message(1, "x@b.test", said(450, "H[192.0.2.1]:25", "its host"), 1), &f);
	reasons_add(r, message(2, "x@a.test", said(450, "o[192.0.2.9]:25", "another"), 1), &f);
	reasons_add(r, message(3, "x@A.test", said(450, "", "its domain"), 1), &f);
	reasons_add(r,
		    message(4,
			    "x@b\xc3\xbc"
			    "cher.test",
			    said(450, "", "one in another spelling"), 1),
		    &f);
	reasons_add(r, message(5, "x@b.test", NULL, 1), &f);
	reasons_print(&out, r, REASONS_OLDEST, 10);
	assert_int_equal(count(buf_cstr(&out), "\"queue\":"), 3);
	assert_int_equal(count(buf_cstr(&out), "4.2.0 another"), 0);
	reasons_free(&r);
	buf_fini(&out);
}

static void too_many_are_left_out(void **state)
{
	(void)state;
	struct buf out = {0};
	struct reasons *r = reasons_new();
	for (int i = 0; i < 250; i++) {
		char text[] = "aa";
		text[0] = (char)('a' + i / 20);
		text[1] = (char)('a' + i % 20);
		reasons_add(r, message(i, "x@a.test", said(450, "", text), 1), NULL);
	}
	reasons_print(&out, r, REASONS_OLDEST, 1000);
	assert_int_equal(count(buf_cstr(&out), "\"queue\":"), 200);
	reasons_free(&r);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_is_to_be_sent_later_is_a_reason_of_its_own, let_go),
		cmocka_unit_test_teardown(what_differs_by_ids_and_addresses_only_is_one_reason,
					  let_go),
		cmocka_unit_test_teardown(a_message_counts_once_for_each_of_its_reasons, let_go),
		cmocka_unit_test_teardown(only_those_of_a_destination_are_wanted, let_go),
		cmocka_unit_test_teardown(too_many_are_left_out, let_go),
	};
	return RUN(tests);
}
