/* SPDX-License-Identifier: ISC */
#include "base/clock.h"

#include <time.h>

/* While a simulation runs, the time that it has set; else 0. */
static int64_t standing_us;

static int64_t read_us(clockid_t id)
{
	if (standing_us)
		return standing_us + (id == CLOCK_REALTIME ? CLOCK_SIMULATED_START_US : 0);
	struct timespec t;
	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

int64_t clock_steady_ms(void)
{
	return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clock_steady_us(void)
{
	return read_us(CLOCK_MONOTONIC);
}

int64_t clock_wall_ms(void)
{
	return read_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_wall_us(void)
{
	return read_us(CLOCK_REALTIME);
}

void clock_stand(int64_t steady_us)
{
	standing_us = steady_us;
}
