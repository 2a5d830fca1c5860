/* SPDX-License-Identifier: ISC */
#include "tests/unit/cmd/unit.h"

#include "cmd/text/condition_print.c"
#include "cmd/text/json_put.c"
#include "cmd/text/moment.c"
#include "cmd/text/stats_print.c"

static char first[] = "mx.test", second[] = "a\"b.test", transport[] = "smtp", other[] = "slow";

/* Two transports share a site's name. */
static struct snapshot three_sites(void)
{
	struct snapshot s = {.sites = 40, .dead = 3, .nsite = 3};
	s.site[0] = (struct snapshot_site){.name = first, .transport = transport, .window = 5};
	s.site[1] = (struct snapshot_site){.name = second, .transport = transport, .window = 2};
	s.site[2] = (struct snapshot_site){.name = first, .transport = other, .window = 1};
	return s;
}

static void a_name_is_printed_once_with_what_all_transports_allow(void **state)
{
	(void)state;
	struct snapshot s = three_sites();
	struct stats_view view = {.accepting = true, .uptime_ms = 61500, .snapshot = &s};
	struct buf to = {0};
	stats_print(&to, METRICS_PROMETHEUS, &view);
	const char *text = buf_cstr(&to);
	assert_non_null(strstr(text, "\nsluice_destination_window{site=\"mx.test\"} 6\n"
				     "sluice_destination_window{site=\"a\\\"b.test\"} 2\n"));
	assert_non_null(strstr(text, "\nsluice_destinations 40\n"));
	assert_non_null(strstr(text, "\nsluice_destinations_dead 3\n"));
	assert_non_null(strstr(text, "\nsluice_uptime_seconds 61\n"));
	assert_non_null(strstr(text, "\nsluice_accepting 1\n"));
	buf_fini(&to);
}

static void for_people_and_programs_it_begins_with_the_version(void **state)
{
	(void)state;
	struct snapshot s = three_sites();
	struct stats_view view = {.accepting = false, .uptime_ms = 1000, .snapshot = &s};
	struct buf to = {0};
	stats_print(&to, METRICS_LINES, &view);
	assert_memory_equal(
		buf_data(&to), "version " SLUICE_VERSION "\nuptime_seconds 1\naccepting no\n",
		sizeof "version " SLUICE_VERSION "\nuptime_seconds 1\naccepting no\n" - 1);
	buf_clear(&to);
	stats_print(&to, METRICS_JSON, &view);
	const char *text = buf_cstr(&to);
	assert_memory_equal(text, "{\"version\":\"", 12);
	assert_non_null(strstr(text, "\"accepting\":false,"));
	assert_string_equal(strstr(text, ",\"destination_window"),
			    ",\"destination_window{site=\\\"mx.test\\\"}\":6,"
			    "\"destination_window{site=\\\"a\\\\\\\"b.test\\\"}\":2}\n");
	buf_fini(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_printed_once_with_what_all_transports_allow),
		cmocka_unit_test(for_people_and_programs_it_begins_with_the_version),
	};
	return RUN(tests);
}
