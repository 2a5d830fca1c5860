/* number.h - the smaller and the larger of two; a rate as people read it.
 *
 * THREAD     Any. Pure.
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdint.h>
#include <stdio.h>

enum { NUMBER_RATE_MAX = 24 };

static inline int64_t number_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t number_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Three digits, and those that are before the point: 0.25, 12.5, 12500. Returns text. */
static inline const char *number_rate(char text[NUMBER_RATE_MAX], double rate)
{
	snprintf(text, NUMBER_RATE_MAX, rate < 999.5 ? "%.3g" : "%.0f", rate);
	return text;
}

#endif
