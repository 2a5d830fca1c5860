/* SPDX-License-Identifier: ISC */
/* What is purged of the stream of a queue that was adopted. This test stands in for the library's call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "replica/harvest.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 20, END = 30 };

static struct {
	char *stream, *subjects;
	uint64_t sequence;
} purge[MOST];
static int n;

natsStatus js_PurgeStream(jsCtx *js, const char *stream, jsOptions *o, jsErrCode *code)
{
	(void)js;
	(void)code;
	assert_true(n < MOST);
	purge[n].stream = mem_strdup(stream);
	purge[n].subjects = o->Stream.Purge.Subject ? mem_strdup(o->Stream.Purge.Subject) : NULL;
	purge[n++].sequence = o->Stream.Purge.Sequence;
	return NATS_OK;
}

static int teardown(void **state)
{
	(void)state;
	while (n > 0) {
		free(purge[--n].stream);
		free(purge[n].subjects);
	}
	return 0;
}

static void discard(uint64_t since, uint64_t epoch)
{
	struct nats_setup setup = {.wait_ms = 1000};
	harvest_discard(&setup, "n9", &(struct replica_epoch){.since = since, .epoch = epoch}, END);
}

/* A stream that has lost its tail gives its numbers again, to what the node writes when it has begun anew, with this epoch or
 * a later one. */
static void only_what_was_read_is_purged_by_its_epochs(void **state)
{
	(void)state;
	discard(3, 5);
	assert_int_equal(n, 2);
	for (int i = 0; i < n; i++) {
		assert_string_equal(purge[i].stream, "sluice-n9");
		assert_non_null(purge[i].subjects);
		assert_int_equal(purge[i].sequence, END + 1);
	}
	assert_string_equal(purge[0].subjects, "sluice.n9.3.>");
	assert_string_equal(purge[1].subjects, "sluice.n9.4.>");
}

/* Starts purge those before. */
static void of_a_long_life_the_last_epochs_are_purged(void **state)
{
	(void)state;
	discard(1, 1000);
	assert_in_range(n, 2, MOST - 1);
	assert_string_equal(purge[n - 1].subjects, "sluice.n9.999.>");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(only_what_was_read_is_purged_by_its_epochs, teardown),
		cmocka_unit_test_teardown(of_a_long_life_the_last_epochs_are_purged, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
