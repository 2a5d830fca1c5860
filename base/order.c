/* SPDX-License-Identifier: ISC */
#include "base/order.h"

#include <assert.h>
#include <string.h>

static const struct {
	const char *word, *done;
} orders[] = {
#define X(order, word, done) {word, done},
	ORDERS(X)
#undef X
};

bool order_changes(enum order o)
{
	assert((size_t)o < sizeof orders / sizeof *orders);
	return o != ORDER_LIST && o != ORDER_SHOW;
}

const char *order_word(enum order o)
{
	assert((size_t)o < sizeof orders / sizeof *orders);
	return orders[o].word;
}

const char *order_done(enum order o)
{
	assert(order_changes(o));
	return orders[o].done;
}

bool order_find(const char *word, size_t len, enum order *o)
{
	for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
		if (strlen(orders[i].word) == len && memcmp(orders[i].word, word, len) == 0) {
			*o = (enum order)i;
			return true;
		}
	return false;
}
