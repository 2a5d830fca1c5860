/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/metrics.h"

#include <pthread.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 50000 };

static void *count(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS; i++) {
		metrics_add(METRIC_sent, 2);
		metrics_add(METRIC_server_connections, i % 2 ? -1 : 1);
	}
	return NULL;
}

static void what_threads_counted_stays_when_they_have_ended(void **state)
{
	(void)state;
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, count, NULL);
	assert_true(metrics_sum(METRIC_sent) >= 0); /* while they count */
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(metrics_sum(METRIC_sent), 2 * THREADS * ROUNDS);
	assert_int_equal(metrics_sum(METRIC_server_connections), 0);
}

static void they_are_printed_as_lines_and_as_one_object(void **state)
{
	(void)state;
	struct buf to = {0};
	metrics_add(METRIC_received, 7);
	metrics_print(&to, false);
	assert_non_null(strstr(buf_cstr(&to), "messages_received_total 7\n"));
	buf_clear(&to);
	metrics_print(&to, true);
	assert_int_equal(buf_data(&to)[0], '{');
	assert_non_null(strstr(buf_cstr(&to), "\"messages_received_total\":7,"));
	assert_non_null(strstr(buf_cstr(&to), "\"deliveries_total{result=\\\"sent\\\"}\":"));
	assert_string_equal(buf_cstr(&to) + buf_len(&to) - 2, "}\n");
	buf_fini(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_threads_counted_stays_when_they_have_ended),
		cmocka_unit_test(they_are_printed_as_lines_and_as_one_object),
	};
	return RUN(tests);
}
