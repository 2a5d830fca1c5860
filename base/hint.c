/* SPDX-License-Identifier: ISC */
#include "base/hint.h"

#include "base/keyed_hash.h"

#include <assert.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>

enum { PLACES = 1 << 20 }; /* ten for each name that may be known */

static atomic_ushort known[HINTS][PLACES];

static atomic_ushort *place_of(enum hint h, const char *name)
{
	assert(h < HINTS);
	return &known[h][keyed_hash(name, strlen(name)) % PLACES];
}

void hint_add(enum hint h, const char *name)
{
	unsigned before = atomic_fetch_add_explicit(place_of(h, name), 1, memory_order_relaxed);
	assert(before < USHRT_MAX);
	(void)before;
}

void hint_drop(enum hint h, const char *name)
{
	unsigned before = atomic_fetch_sub_explicit(place_of(h, name), 1, memory_order_relaxed);
	assert(before > 0);
	(void)before;
}

bool hint_maybe(enum hint h, const char *name)
{
	return atomic_load_explicit(place_of(h, name), memory_order_relaxed) > 0;
}
