/* SPDX-License-Identifier: ISC */
#include "base/descriptors.h"

#include <assert.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct share {
	int most, leave;
} shares[] = {
#define U(name, eighths, sixteenths) [DESCRIPTORS_##name] = {eighths, sixteenths},
	DESCRIPTOR_USES(U)
#undef U
};

static _Atomic int64_t taken[DESCRIPTOR_USES_N], taken_in_all;
static _Atomic int64_t shared = INT64_MAX; /* how many there are to take */
static int64_t beside = -1;		   /* main's: those that are not counted */

/* Numbers are given from the lowest on, and at the start there are no gaps. */
static int64_t count_open(void)
{
	int lowest = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	if (lowest >= 0)
		close(lowest);
	return lowest < 0 ? 0 : lowest;
}

int64_t descriptors_of_system(void)
{
	struct rlimit system;
	bool bounded = getrlimit(RLIMIT_NOFILE, &system) == 0 && system.rlim_cur != RLIM_INFINITY;
	return bounded ? (int64_t)system.rlim_cur : 0;
}

void descriptors_limit(int64_t limit)
{
	int64_t system = descriptors_of_system();
	if (system > 0 && (limit == 0 || limit > system))
		limit = system;
	if (beside < 0) {
		beside = count_open() - atomic_load(&taken_in_all);
		beside = (beside > 0 ? beside : 0) + DESCRIPTORS_RESERVE;
	}
	int64_t n = limit == 0 ? INT64_MAX : limit - beside;
	atomic_store(&shared, n > DESCRIPTORS_LEAST ? n : DESCRIPTORS_LEAST);
}

bool descriptors_room(enum descriptor_use use)
{
	assert(use < DESCRIPTOR_USES_N);
	int64_t n = atomic_load_explicit(&shared, memory_order_relaxed);
	int64_t own = atomic_load_explicit(&taken[use], memory_order_relaxed);
	int64_t all = atomic_load_explicit(&taken_in_all, memory_order_relaxed);
	return own < n / 8 * shares[use].most && all < n - n / 16 * shares[use].leave;
}

void descriptors_count(enum descriptor_use use)
{
	assert(use < DESCRIPTOR_USES_N);
	atomic_fetch_add_explicit(&taken[use], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&taken_in_all, 1, memory_order_relaxed);
}

bool descriptors_take(enum descriptor_use use)
{
	bool room = descriptors_room(use);
	if (room)
		descriptors_count(use);
	return room;
}

void descriptors_give(enum descriptor_use use)
{
	assert(use < DESCRIPTOR_USES_N);
	int64_t before = atomic_fetch_sub_explicit(&taken[use], 1, memory_order_relaxed);
	int64_t in_all = atomic_fetch_sub_explicit(&taken_in_all, 1, memory_order_relaxed);
	assert(before > 0 && in_all > 0);
}
