/* SPDX-License-Identifier: ISC */
#include "base/metrics.h"

#include "base/mem.h"

#include <assert.h>
#include <stdatomic.h>

struct histogram {
	_Atomic int64_t sum, bucket[HISTOGRAM_BUCKETS];
};

struct set {
	struct set *next; /* written before the set is listed, never after */
	_Atomic int64_t value[METRIC_COUNT];
	struct histogram histogram[HISTOGRAM_COUNT];
};

static _Atomic(struct set *) sets;
static _Thread_local struct set *mine;

static struct set *make_mine(void)
{
	struct set *s = mem_zalloc(sizeof *s);
	s->next = atomic_load_explicit(&sets, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&sets, &s->next, s, memory_order_release,
						      memory_order_relaxed))
		;
	return mine = s;
}

static struct set *first_set(void)
{
	return atomic_load_explicit(&sets, memory_order_acquire);
}

/* Only this thread writes here: a load and a store are enough, and cost no locked bus. */
static void add_own(_Atomic int64_t *to, int64_t n)
{
	int64_t value = atomic_load_explicit(to, memory_order_relaxed);
	atomic_store_explicit(to, value + n, memory_order_relaxed);
}

void metrics_add(enum metric m, int64_t n)
{
	assert(m < METRIC_COUNT);
	struct set *s = mine ? mine : make_mine();
	add_own(&s->value[m], n);
}

int64_t metrics_sum(enum metric m)
{
	assert(m < METRIC_COUNT);
	int64_t sum = 0;
	for (struct set *s = first_set(); s; s = s->next)
		sum += atomic_load_explicit(&s->value[m], memory_order_relaxed);
	return sum;
}

static const int64_t bounds[HISTOGRAM_COUNT][HISTOGRAM_BUCKETS - 1] = {
#define H(name, family, label, unit, limits, sentence) {limits},
	HISTOGRAMS(H)
#undef H
};

const int64_t *metrics_bounds(enum metric_histogram h)
{
	assert(h < HISTOGRAM_COUNT);
	return bounds[h];
}

void metrics_observe(enum metric_histogram h, int64_t value)
{
	struct set *s = mine ? mine : make_mine();
	int bucket = 0;
	assert(h < HISTOGRAM_COUNT && value >= 0);
	while (bucket < HISTOGRAM_BUCKETS - 1 && value > bounds[h][bucket])
		bucket++;
	add_own(&s->histogram[h].bucket[bucket], 1);
	add_own(&s->histogram[h].sum, value);
}

void metrics_histogram(enum metric_histogram h, struct histogram_sum *to)
{
	assert(h < HISTOGRAM_COUNT);
	*to = (struct histogram_sum){0};
	for (struct set *s = first_set(); s; s = s->next) {
		struct histogram *one = &s->histogram[h];
		to->sum += atomic_load_explicit(&one->sum, memory_order_relaxed);
		for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
			to->bucket[i] +=
				atomic_load_explicit(&one->bucket[i], memory_order_relaxed);
	}
	/* Of the buckets, and not counted by itself: so the two agree, whenever it is read. */
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		to->count += to->bucket[i];
}
