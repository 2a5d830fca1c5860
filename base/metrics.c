/* SPDX-License-Identifier: ISC */
#include "base/metrics.h"

#include "base/log.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

struct set {
	struct set *next; /* written before the set is listed, never after */
	_Atomic int64_t value[METRIC_COUNT];
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

void metrics_add(enum metric m, int64_t n)
{
	struct set *s = mine ? mine : make_mine();
	/* Only this thread writes here: a load and a store are enough, and cost no locked bus. */
	int64_t value = atomic_load_explicit(&s->value[m], memory_order_relaxed);
	atomic_store_explicit(&s->value[m], value + n, memory_order_relaxed);
}

int64_t metrics_sum(enum metric m)
{
	int64_t sum = 0;
	for (struct set *s = atomic_load_explicit(&sets, memory_order_acquire); s; s = s->next)
		sum += atomic_load_explicit(&s->value[m], memory_order_relaxed);
	return sum;
}

static const char *const prometheus[] = {
#define M(name, text, sentence) text,
	METRICS(M)
#undef M
};

void metrics_print(struct buf *to, bool json)
{
	if (json)
		buf_puts(to, "{");
	for (int m = 0; m < METRIC_COUNT; m++) {
		int64_t sum = metrics_sum((enum metric)m);
		if (!json) {
			buf_printf(to, "%s %" PRId64 "\n", prometheus[m], sum);
			continue;
		}
		if (m > 0)
			buf_puts(to, ",");
		log_json_string(to, prometheus[m]);
		buf_printf(to, ":%" PRId64, sum);
	}
	if (json)
		buf_puts(to, "}\n");
}

static const char *const sentences[] = {
#define M(name, text, sentence) sentence,
	METRICS(M)
#undef M
};

/* Name without labels: a family of metrics. */
static size_t family(const char *name)
{
	return strcspn(name, "{");
}

void metrics_prometheus(struct buf *to)
{
	const char *before = "";
	for (int m = 0; m < METRIC_COUNT; m++) {
		const char *name = prometheus[m];
		int len = (int)family(name);
		if (family(before) != (size_t)len || strncmp(before, name, (size_t)len) != 0) {
			bool counter = len > 6 && strncmp(name + len - 6, "_total", 6) == 0;
			buf_printf(to, "# HELP sluice_%.*s %s.\n", len, name, sentences[m]);
			buf_printf(to, "# TYPE sluice_%.*s %s\n", len, name,
				   counter ? "counter" : "gauge");
		}
		buf_printf(to, "sluice_%s %" PRId64 "\n", name, metrics_sum((enum metric)m));
		before = name;
	}
}
