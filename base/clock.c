/* SPDX-License-Identifier: ISC */
#include "base/clock.h"

#include <stdatomic.h>
#include <time.h>

/* While a simulation runs, the time that it has set; else 0. */
static int64_t standing_us;

/* So much the wall clock is ahead of the time since the boot; at first it is the system's. */
static _Atomic int64_t ahead_us = INT64_MIN;

static int64_t read_us(clockid_t id)
{
	if (standing_us)
		return standing_us + (id == CLOCK_MONOTONIC ? 0 : CLOCK_SIMULATED_START_US);
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
	return clock_wall_us() / 1000;
}

int64_t clock_wall_us(void)
{
	int64_t ahead = atomic_load_explicit(&ahead_us, memory_order_relaxed);
	return ahead == INT64_MIN || standing_us ? read_us(CLOCK_REALTIME)
						 : read_us(CLOCK_BOOTTIME) + ahead;
}

int64_t clock_system_ms(void)
{
	return read_us(CLOCK_REALTIME) / 1000;
}

int64_t clock_up_ms(void)
{
	return read_us(CLOCK_BOOTTIME) / 1000;
}

void clock_set_wall(int64_t wall_ms)
{
	atomic_store_explicit(&ahead_us, wall_ms * 1000 - read_us(CLOCK_BOOTTIME),
			      memory_order_relaxed);
}

void clock_stand(int64_t steady_us)
{
	standing_us = steady_us;
}
