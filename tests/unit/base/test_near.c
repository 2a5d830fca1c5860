/* SPDX-License-Identifier: ISC */
#include "tests/unit/base/unit.h"

#include "base/conf_blank.h"
#include "base/near.h"

#include <stdio.h>
#include <string.h>

static void a_letter_or_two_may_be_wrong(void **state)
{
	(void)state;
	assert_true(near_is("hostnam", "hostname"));
	assert_true(near_is("hotsname", "hostname"));
	assert_true(near_is("minimal_backof_tim", "minimal_backoff_time"));
	assert_true(near_is("Hostname", "hostnome"));
	assert_false(near_is("hostname", "hostname"));
	assert_false(near_is("host", "hostname"));
	assert_false(near_is("log", "dns"));
	assert_true(near_is("lgo", "log"));
	assert_false(near_is("", "a"));
	assert_false(near_is("a", ""));
}

static void blanked(const char *text, int line, const char *name, const char *left)
{
	char copy[200];
	snprintf(copy, sizeof copy, "%s", text);
	assert_int_equal(conf_blank(copy, line, name), strcmp(text, left) != 0);
	assert_string_equal(copy, left);
}

static void a_setting_is_blanked_with_its_value(void **state)
{
	(void)state;
	blanked("a = 1\nbb = x y = 2", 2, "bb", "a = 1\n       y = 2");
	blanked("s { bb = \"}\" }", 1, "bb", "s {          }");
	blanked("bb += { \"}\",\n\"x\" } c = 1", 1, "bb", "            \n      c = 1");
	blanked("bb \"t\" { c { d = 1 } } e = 2", 1, "bb", "                       e = 2");
	blanked("bbb = bb", 1, "bb", "bbb =   ");
	blanked("bb = \"never closed", 1, "bb", "                  ");
	blanked("a = 1", 1, "bb", "a = 1");
	blanked("a = 1", 7, "a", "a = 1");
	blanked("a\n  \nb", 2, "", "a\n  \nb");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_letter_or_two_may_be_wrong),
		cmocka_unit_test(a_setting_is_blanked_with_its_value),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
