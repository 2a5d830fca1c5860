/* SPDX-License-Identifier: ISC */
#include "base/number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_rate_has_three_digits_and_no_exponent(void **state)
{
	static const struct {
		double rate;
		const char *text;
	} rows[] = {{0, "0"},		{0.0021, "0.0021"}, {1.0 / 3, "0.333"}, {1, "1"},
		    {12.34, "12.3"},	{999.4, "999"},	    {999.5, "1000"},	{1234.5, "1234"},
		    {12345.6, "12346"}, {1e5, "100000"}};
	char text[NUMBER_RATE_MAX];
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		assert_string_equal(number_rate(text, rows[i].rate), rows[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_has_three_digits_and_no_exponent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
