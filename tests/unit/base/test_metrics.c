/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/metrics_print.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 20000 };

static void *count(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		metrics_add(METRIC_bounces, 2);
		metrics_add(METRIC_server_connections, i % 2 ? -1 : 1);
		metrics_observe(HISTOGRAM_commit_messages, i % 4);
		metric_cell_add(metric_cell(FAMILY_rejects, i % 2 ? "odd" : "even", NULL), 1);
	}
	return NULL;
}

static void what_threads_counted_stays_when_they_have_ended(void **state)
{
	(void)state;
	pthread_t threads[THREADS];
	struct histogram_sum h;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, count, NULL);
	assert_true(metrics_sum(METRIC_bounces) >= 0); /* while they count */
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(metrics_sum(METRIC_bounces), 2 * THREADS * ROUNDS);
	assert_int_equal(metrics_sum(METRIC_server_connections), 0);
	metrics_histogram(HISTOGRAM_commit_messages, &h);
	assert_int_equal(h.count, THREADS * ROUNDS);
	assert_int_equal(h.sum, THREADS * ROUNDS / 4 * (0 + 1 + 2 + 3));
	for (int i = 0; i < 4; i++)
		assert_int_equal(h.bucket[i], THREADS * ROUNDS / 4);
	assert_int_equal(metric_cells_sum(FAMILY_rejects, "odd"), THREADS * ROUNDS / 2);
	assert_int_equal(metric_cells_sum(FAMILY_rejects, NULL), THREADS * ROUNDS);
	int cells = 0;
	for (const struct metric_cell *c = NULL; (c = metric_cell_next(FAMILY_rejects, c));)
		cells++;
	assert_int_equal(cells, 2);
}

static int bucket_of(int64_t value)
{
	struct histogram_sum before, after;
	metrics_histogram(HISTOGRAM_transmission, &before);
	metrics_observe(HISTOGRAM_transmission, value);
	metrics_histogram(HISTOGRAM_transmission, &after);
	assert_int_equal(after.sum - before.sum, value);
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (after.bucket[i] != before.bucket[i])
			return i;
	return -1;
}

static void a_bound_belongs_to_the_bucket_below_it(void **state)
{
	(void)state;
	const int64_t *bounds = metrics_bounds(HISTOGRAM_transmission);
	assert_int_equal(bucket_of(0), 0);
	for (int i = 0; i < HISTOGRAM_BUCKETS - 1; i++) {
		assert_int_equal(bucket_of(bounds[i]), i);
		assert_int_equal(bucket_of(bounds[i] + 1), i + 1);
		assert_true(i == 0 || bounds[i] > bounds[i - 1]);
	}
	assert_int_equal(bucket_of(INT64_C(1) << 50), HISTOGRAM_BUCKETS - 1);
}

static void all_bounds_grow(void **state)
{
	(void)state;
	for (int h = 0; h < HISTOGRAM_COUNT; h++)
		for (int i = 1; i < HISTOGRAM_BUCKETS - 1; i++)
			assert_true(metrics_bounds((enum metric_histogram)h)[i] >
				    metrics_bounds((enum metric_histogram)h)[i - 1]);
}

static void labels_without_end_come_together_in_one(void **state)
{
	(void)state;
	int cells = 0;
	for (int i = 0; i < METRIC_CELLS_MAX + 100; i++) {
		char title[20];
		snprintf(title, sizeof title, "t%d", i);
		metric_cell_add(metric_cell(FAMILY_deliveries, "deferred", title), 1);
	}
	for (const struct metric_cell *c = NULL; (c = metric_cell_next(FAMILY_deliveries, c));)
		cells++;
	assert_int_equal(cells, METRIC_CELLS_MAX);
	struct metric_cell *other = metric_cell(FAMILY_deliveries, "deferred", "one more");
	assert_string_equal(metric_cell_label(other, 0), "other");
	assert_string_equal(metric_cell_label(other, 1), "other");
	assert_int_equal(metric_cell_value(other), 101);
	assert_int_equal(metric_cells_sum(FAMILY_deliveries, NULL), METRIC_CELLS_MAX + 100);
}

static const char *printed(struct buf *to, enum metrics_form form)
{
	struct metrics_print p = {.to = to, .form = form};
	buf_clear(to);
	metrics_print_all(&p);
	return buf_cstr(to);
}

static void they_are_printed_as_lines_and_as_members(void **state)
{
	(void)state;
	struct buf to = {0};
	metrics_add(METRIC_received, 7);
	metrics_add(METRIC_queue_hold, 2);
	const char *lines = printed(&to, METRICS_LINES);
	assert_non_null(strstr(lines, "messages_received_total 7\n"));
	assert_non_null(strstr(lines, "\nqueue_messages{queue=\"hold\"} 2\n"));
	assert_null(strstr(lines, "#"));
	const char *json = printed(&to, METRICS_JSON);
	assert_int_equal(json[0], ',');
	assert_non_null(strstr(json, ",\"messages_received_total\":7,"));
	assert_non_null(strstr(json, ",\"queue_messages{queue=\\\"hold\\\"}\":2,"));
	buf_fini(&to);
}

static void prometheus_gets_each_family_once_and_its_type(void **state)
{
	(void)state;
	struct buf to = {0};
	const char *text = printed(&to, METRICS_PROMETHEUS);
	assert_non_null(strstr(text, "# TYPE sluice_messages_received_total counter\n"
				     "sluice_messages_received_total 7\n"));
	assert_non_null(strstr(text, "# TYPE sluice_queue_messages gauge\n"
				     "sluice_queue_messages{queue=\"incoming\"} 0\n"));
	const char *type = "# TYPE sluice_delivery_seconds histogram\n";
	assert_non_null(strstr(text, type));
	assert_null(strstr(strstr(text, type) + 1, type));
	buf_fini(&to);
}

static void a_histogram_adds_up_in_the_unit_of_its_name(void **state)
{
	(void)state;
	struct buf to = {0};
	metrics_observe(HISTOGRAM_commit_seconds, 100);
	metrics_observe(HISTOGRAM_commit_seconds, 2400);
	metrics_observe(HISTOGRAM_commit_seconds, 60000000);
	const char *text = printed(&to, METRICS_PROMETHEUS);
	assert_non_null(strstr(text, "sluice_commit_seconds_bucket{le=\"0.0001\"} 1\n"
				     "sluice_commit_seconds_bucket{le=\"0.00025\"} 1\n"));
	assert_non_null(strstr(text, "sluice_commit_seconds_bucket{le=\"0.0025\"} 2\n"));
	assert_non_null(strstr(text, "sluice_commit_seconds_bucket{le=\"10\"} 2\n"
				     "sluice_commit_seconds_bucket{le=\"+Inf\"} 3\n"
				     "sluice_commit_seconds_sum 60.0025\n"
				     "sluice_commit_seconds_count 3\n"));
	assert_non_null(strstr(text, "sluice_delivery_seconds_bucket{stage=\"in_queue\","
				     "le=\"0.001\"} 0\n"));
	assert_non_null(strstr(text, "sluice_delivery_seconds_sum{stage=\"in_queue\"} 0\n"));
	buf_fini(&to);
}

static void labels_are_escaped(void **state)
{
	(void)state;
	struct buf to = {0};
	metrics_label(&to, "a", "x\"y\\z");
	metrics_label(&to, "b", "line\nend\r\t\x01\xff");
	assert_string_equal(buf_cstr(&to), "a=\"x\\\"y\\\\z\",b=\"line?end????\"");
	buf_fini(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_threads_counted_stays_when_they_have_ended),
		cmocka_unit_test(a_bound_belongs_to_the_bucket_below_it),
		cmocka_unit_test(all_bounds_grow),
		cmocka_unit_test(labels_without_end_come_together_in_one),
		cmocka_unit_test(they_are_printed_as_lines_and_as_members),
		cmocka_unit_test(prometheus_gets_each_family_once_and_its_type),
		cmocka_unit_test(a_histogram_adds_up_in_the_unit_of_its_name),
		cmocka_unit_test(labels_are_escaped),
	};
	return RUN(tests);
}
