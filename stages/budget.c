/* SPDX-License-Identifier: ISC */
#include "stages/budget.h"

#include <assert.h>

static _Atomic int64_t held;

void budget_charge(size_t *charged, size_t bytes)
{
	int64_t more = (int64_t)bytes - (int64_t)*charged;
	if (more != 0) {
		int64_t before = atomic_fetch_add_explicit(&held, more, memory_order_relaxed);
		assert(before + more >= 0);
	}
	*charged = bytes;
}

bool budget_spent(const struct conf *c)
{
	return c->session_memory_limit > 0 &&
	       atomic_load_explicit(&held, memory_order_relaxed) >= c->session_memory_limit;
}
