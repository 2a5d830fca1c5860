/* number.h - the smaller and the larger of two.
 *
 * THREAD     Any. Pure.
 */
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdint.h>

static inline int64_t number_min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static inline int64_t number_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

#endif
