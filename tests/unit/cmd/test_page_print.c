/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "base/mem.h"
#include "cmd/page_print.c"
#include "cmd/shape_print.c"

static const char hostile[] = "<script>\"\\</script>";

static void holds(struct buf *to, const char *part)
{
	if (!strstr(buf_cstr(to), part))
		print_error("%s\nhas no %s\n", buf_cstr(to), part);
	assert_non_null(strstr(buf_cstr(to), part));
	assert_null(strchr(buf_cstr(to), '\n')); /* an event is one line */
}

static void sites_are_told_with_their_last_reply(void **state)
{
	(void)state;
	char name[] = "mx.test", transport[] = "smtp";
	struct snapshot s = {.sites = 30, .dead = 1, .nsite = 2};
	s.site[0] = (struct snapshot_site){.name = name,
					   .transport = transport,
					   .state = "dead",
					   .busy = 3,
					   .waiting = 9,
					   .verdicts = 12,
					   .dead_in_ms = 1500};
	s.site[0].last = verdict_at(VERDICT_DEFERRED, 451, "4.3.0", "mx.test[192.0.2.1]:25",
				    hostile, 1700000000123);
	s.site[1] = (struct snapshot_site){.name = name, .transport = transport, .state = "alive"};
	struct page_now now = {.hostname = "relay.test", .accepting = true, .snapshot = &s};
	struct buf to = {0};
	page_print_now(&to, &now);
	holds(&to, "\"hostname\":\"relay.test\"");
	holds(&to, "\"sites\":30,\"dead\":1,\"top\":[{\"site\":\"mx.test\",\"transport\":\"smtp\","
		   "\"state\":\"dead\",\"window\":0,\"connections\":0,\"connecting\":0,\"busy\":3,"
		   "\"waiting\":9,\"verdicts\":12,\"dead_in_ms\":1500,\"last_class\":\"deferred\","
		   "\"last_code\":451,\"last_ms\":1700000000123,"
		   "\"last_host\":\"mx.test[192.0.2.1]:25\","
		   "\"last\":\"<script>\\\"\\\\</script>\"},{\"site\"");
	holds(&to, "\"last_host\":null,\"last\":null}]}");
	verdict_unref(s.site[0].last);
	s.nsite = 0;
	buf_clear(&to);
	page_print_now(&to, &now);
	holds(&to, "\"top\":[]}");
	buf_fini(&to);
}

static void the_past_begins_with_the_oldest(void **state)
{
	(void)state;
	const struct page_sample ring[] = {{3000, 7, 6}, {1000, 1, 0}, {2000, 4, 2}};
	struct buf to = {0};
	page_print_past(&to, ring, 3, 1);
	holds(&to, "{\"samples\":[[1000,1,0],[2000,4,2],[3000,7,6]]}");
	buf_clear(&to);
	page_print_past(&to, ring, 0, 0);
	holds(&to, "{\"samples\":[]}");
	buf_fini(&to);
}

static void the_shape_has_so_many_domains_and_its_past(void **state)
{
	(void)state;
	int64_t count[3] = {4, 1, 0};
	char name[] = "a.test";
	struct shape_row rows[PAGE_DOMAINS + 5];
	struct shape *s = shape_new();
	struct page_ages ages[] = {{.at_ms = 2000, .count = {1, 2}}, {.at_ms = 1000, .count = {3}}};
	struct buf to = {0};
	for (int i = 0; i < PAGE_DOMAINS + 5; i++)
		rows[i] = (struct shape_row){.name = name, .total = 5, .count = count};
	s->buckets = 3;
	s->all = (struct shape_row){.total = 85, .count = count};
	s->row = rows;
	s->n = PAGE_DOMAINS + 5;
	page_print_shape(&to, s, 5, ages, 2, 1);
	holds(&to, "{\"rows\":[{\"domain\":\"TOTAL\",\"total\":85,\"ages\":[{\"below_minutes\":5,"
		   "\"count\":4},{\"below_minutes\":10,\"count\":1},{\"below_minutes\":null,"
		   "\"count\":0}]},{\"domain\":\"a.test\"");
	holds(&to, "}],\"domains\":17,\"past\":[[1000,3,0,0],[2000,1,2,0]]}");
	int found = 0;
	for (const char *at = buf_cstr(&to); (at = strstr(at, "a.test")); at++)
		found++;
	assert_int_equal(found, PAGE_DOMAINS);
	s->row = NULL;
	s->n = 0;
	s->all.count = NULL;
	shape_free(&s);
	buf_fini(&to);
}

static void a_message_is_told_with_all_that_holds_it(void **state)
{
	(void)state;
	struct envelope *e = envelope_new();
	struct spool_row row = {.queue = SPOOL_DEFERRED, .envelope = e};
	struct buf to = {0};
	e->id = 1;
	e->sender = mem_strdup("from@a.test");
	envelope_add(e, "done@a.test");
	envelope_add(e, "open@b.test");
	envelope_add(e, "other@b.test");
	e->rcpt[0].done = true;
	page_print_message(&to, &row, "{\"says\":\"one\"}\n{\"says\":\"two\"}\n");
	holds(&to, "\"queue\":\"deferred\",\"from\":\"from@a.test\",\"to\":\"open@b.test\","
		   "\"recipients\":2,");
	holds(&to, "\"why\":[{\"says\":\"one\"},{\"says\":\"two\"}]}");
	buf_clear(&to);
	page_print_message(&to, &row, "");
	holds(&to, "\"why\":[]}");
	envelope_free(&e);
	buf_fini(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sites_are_told_with_their_last_reply),
		cmocka_unit_test(the_past_begins_with_the_oldest),
		cmocka_unit_test(the_shape_has_so_many_domains_and_its_past),
		cmocka_unit_test(a_message_is_told_with_all_that_holds_it),
	};
	return RUN(tests);
}
