/* SPDX-License-Identifier: ISC */
#include "base/date.h"

#include "base/clock.h"

#include <stdatomic.h>

static _Atomic int64_t ahead;

int64_t date_ahead_ms(void)
{
	return atomic_load_explicit(&ahead, memory_order_relaxed);
}

int64_t date_ms(void)
{
	return clock_wall_ms() + date_ahead_ms();
}

void date_set(int64_t ahead_ms)
{
	atomic_store_explicit(&ahead, ahead_ms, memory_order_relaxed);
}
