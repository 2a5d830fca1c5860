/* SPDX-License-Identifier: ISC */
#include "tests/unit/qmgr/unit.h"

#include "qmgr/sched/heap.h"

enum { MANY = 500 };

struct number {
	int value;
	struct heap_item item;
};

/* The last digit decides last: each part of a key has its turn. */
static struct heap_key key_of(const struct number *x)
{
	return (struct heap_key){(uint64_t)x->value / 100, (uint64_t)x->value / 10 % 10,
				 (uint64_t)x->value % 10};
}

static unsigned state = 1;

static int below(int n)
{
	state = state * 1103515245U + 12345U;
	return (int)((state >> 8) % (unsigned)n);
}

static void the_least_comes_first_whatever_changes(void **unused)
{
	(void)unused;
	static struct number numbers[MANY];
	struct heap h;
	heap_init(&h);
	for (int step = 0; step < 20000; step++) {
		struct number *x = &numbers[below(MANY)];
		int change = below(3);
		if (!heap_has(&x->item)) {
			x->value = below(1000);
			heap_put(&h, &x->item, key_of(x));
		} else if (change == 0) {
			heap_remove(&h, &x->item);
			assert_false(heap_has(&x->item));
		} else {
			x->value = below(1000);
			heap_put(&h, &x->item, key_of(x));
		}
		int least = 1000;
		for (int i = 0; i < MANY; i++)
			if (heap_has(&numbers[i].item) && numbers[i].value < least)
				least = numbers[i].value;
		if (h.n > 0)
			assert_int_equal(heap_entry(heap_first(&h), struct number, item)->value,
					 least);
	}
	while (h.n > 0)
		heap_remove(&h, heap_first(&h));
	heap_remove(&h, &numbers[0].item); /* harmless */
	heap_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_comes_first_whatever_changes),
	};
	return RUN(tests);
}
