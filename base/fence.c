/* SPDX-License-Identifier: ISC */
#include "base/fence.h"

#include "base/clock.h"

#include <stdatomic.h>

static _Atomic int64_t until_ms = FENCE_NEVER;

void fence_set(int64_t until_up_ms)
{
	atomic_store(&until_ms, until_up_ms);
}

bool fence_open(void)
{
	int64_t until = atomic_load(&until_ms);
	return until == FENCE_NEVER || clock_up_ms() < until;
}
