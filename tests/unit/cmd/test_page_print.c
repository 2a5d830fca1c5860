/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "base/mem.h"
#include "cmd/http/page_hour.c"
#include "cmd/http/page_print.c"
#include "cmd/text/condition_print.c"
#include "cmd/text/node_rows.c"
#include "cmd/text/json_put.c"
#include "cmd/text/milter_print.c"
#include "cmd/text/moment.c"
#include "cmd/text/reply_words.c"

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
	char name[] = "mx.test", transport[] = "smtp", domain[] = "a.test", key[] = "smtp mx.test";
	struct snapshot s = {.sites = 30, .dead = 1, .nsite = 2};
	s.worst[0] = (struct snapshot_site){.key = key,
					    .name = name,
					    .transport = transport,
					    .state = "dead",
					    .busy = 3,
					    .waiting = 9,
					    .deferred = 70,
					    .verdicts = 12,
					    .unreached = 3,
					    .sent_lately = 4,
					    .lately_ms = 30000,
					    .oldest_ms = 1600000000000,
					    .number = 2,
					    .domain = {domain},
					    .domains = 5,
					    .dead_in_ms = 1500};
	s.worst[0].last = verdict_at(VERDICT_DEFERRED, 451, "4.3.0", "mx.test[192.0.2.1]:25",
				     hostile, 1700000000123);
	s.worst[1] = (struct snapshot_site){.name = name, .transport = transport, .state = "alive"};
	struct page_now now = {.hostname = "relay.test", .accepting = true, .snapshot = &s};
	struct buf to = {0};
	page_print_now(&to, &now);
	holds(&to, "\"hostname\":\"relay.test\"");
	holds(&to, "\"sites\":30,\"dead\":1,\"worst\":[{\"site\":\"mx.test\",\"transport\":"
		   "\"smtp\",\"key\":\"smtp mx.test\",\"provider\":null,"
		   "\"state\":\"dead\",\"window\":0,\"connections\":0,\"connecting\":0,\"busy\":3,"
		   "\"waiting\":9,\"deferred\":70,\"attempts\":15,\"verdicts\":12,\"sent_lately\":"
		   "4,\"deferred_lately\":0,"
		   "\"lately_ms\":30000,\"oldest_ms\":1600000000000,\"number\":2,\"domains\":5,"
		   "\"domains_seen\":false,"
		   "\"domain\":[\"a.test\"],\"dead_in_ms\":1500,\"pace_per_"
		   "1000s\":0,\"last_class\":"
		   "\"deferred\","
		   "\"last_code\":451,\"last_ms\":1700000000123,"
		   "\"last_host\":\"mx.test[192.0.2.1]:25\","
		   "\"last\":\"<script>\\\"\\\\</script>\"},{\"site\"");
	holds(&to, "\"last_host\":null,\"last\":null}]}");
	verdict_unref(s.worst[0].last);
	s.nsite = 0;
	buf_clear(&to);
	page_print_now(&to, &now);
	holds(&to, "\"worst\":[]}");
	buf_fini(&to);
}

static void what_came_of_tls_is_told_and_certificates_with_their_time(void **state)
{
	(void)state;
	char name[] = "mx.test tls=verify", transport[] = "smtp";
	struct snapshot s = {.nunproven = 1};
	s.unproven[0] = (struct snapshot_site){
		.name = name, .transport = transport, .state = "dead", .deferred = 4};
	struct page_now now = {.hostname = "relay.test", .accepting = true, .snapshot = &s};
	struct buf to = {0};
	metrics_add(METRIC_tls_client_sts, 3);
	metrics_add(METRIC_tls_client_missing, 2);
	metric_cell_set(metric_cell(FAMILY_certificate_expiry, "/etc/gone.pem", NULL), METRIC_GONE);
	metric_cell_set(metric_cell(FAMILY_certificate_expiry, "/etc/own.pem", NULL), -5);
	page_print_now(&to, &now);
	holds(&to, "\"tls\":{\"dane\":0,\"mta_sts\":3,\"matched\":0,\"unverified\":0,\"clear\":0,"
		   "\"untrusted\":0,\"failed\":0,\"missing\":2,\"broken\":0,"
		   "\"unproven\":[{\"site\":\"mx.test tls=verify\"");
	holds(&to, "\"certificates\":[{\"file\":\"/etc/own.pem\",\"left_s\":-5}]},");
	buf_fini(&to);
}

static void the_hour_begins_with_the_oldest_point_and_no_more_than_an_hour_is_kept(void **state)
{
	(void)state;
	static struct page_hour hour;
	struct buf to = {0};
	page_hour_print(&to, &hour);
	holds(&to, "{\"counts\":[\"received\",\"rejected\",\"sent\",\"deferred\",\"bounced\"],"
		   "\"points\":[]}");
	int64_t before = metrics_sum(METRIC_received);
	for (int i = 0; i < PAGE_HOUR_POINTS + 2; i++) {
		page_hour_take(&hour, 1000 * i);
		metrics_add(METRIC_received, 1);
	}
	char *first = mem_printf("\"points\":[[2000,%d,0,0,0,0],[3000,", (int)before + 2);
	char *last = mem_printf(",[362000,%d,0,0,0,0]]}", (int)before + 362);
	buf_clear(&to);
	page_hour_print(&to, &hour);
	holds(&to, first);
	holds(&to, last);
	free(first);
	free(last);
	buf_fini(&to);
}

static void a_message_is_told_with_what_was_said_last(void **state)
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
	e->rcpt[0].last = verdict_at(VERDICT_FAILED, 550, NULL, "", "done", 3000);
	e->rcpt[1].last =
		verdict_at(VERDICT_DEFERRED, 450, NULL, "mx[192.0.2.1]:25", hostile, 2000);
	e->rcpt[2].last = verdict_at(VERDICT_DEFERRED, 451, NULL, "", "before", 1000);
	page_print_message(&to, &row);
	holds(&to, "\"queue\":\"deferred\",\"from\":\"from@a.test\",\"to\":\"open@b.test\","
		   "\"recipients\":2,");
	holds(&to, "\"says\":\"mx[192.0.2.1]:25 said 450 4.0.0 <script>\\\"\\\\</script>\"}");
	buf_clear(&to);
	json_put_lines(&to, "all", "{\"a\":1}\n{\"b\":2}\n");
	holds(&to, "\"all\":[{\"a\":1},{\"b\":2}],");
	buf_clear(&to);
	json_put_lines(&to, "all", "");
	holds(&to, "\"all\":[],");
	envelope_free(&e);
	buf_fini(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sites_are_told_with_their_last_reply),
		cmocka_unit_test(what_came_of_tls_is_told_and_certificates_with_their_time),
		cmocka_unit_test(
			the_hour_begins_with_the_oldest_point_and_no_more_than_an_hour_is_kept),
		cmocka_unit_test(a_message_is_told_with_what_was_said_last),
	};
	return RUN(tests);
}
