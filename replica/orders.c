/* SPDX-License-Identifier: ISC */
#include "replica/orders.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

void orders_init(struct orders *o)
{
	list_init(&o->queue);
	o->n = 0;
}

void orders_fini(struct orders *o)
{
	while (o->n > 0)
		orders_done(o);
}

static struct order *order_new(struct orders *o, enum order_kind kind)
{
	struct order *new = mem_zalloc(sizeof *new);
	new->kind = kind;
	o->n++;
	return new;
}

struct order *orders_add(struct orders *o, enum order_kind kind, struct copy_key key,
			 const void *bytes, size_t len)
{
	struct order *new = order_new(o, kind);
	new->key = key;
	if (len > 0)
		buf_append(&new->bytes, bytes, len);
	list_append(&o->queue, &new->link);
	return new;
}

struct order *orders_next(struct orders *o, enum order_kind kind, uint64_t before)
{
	struct order *new = order_new(o, kind);
	new->before = before;
	list_insert_before(o->queue.next == &o->queue ? &o->queue : o->queue.next->next,
			   &new->link);
	return new;
}

struct order *orders_at_once(struct orders *o, enum order_kind kind)
{
	struct order *new = order_new(o, kind);
	list_prepend(&o->queue, &new->link);
	return new;
}

bool order_is_purge(enum order_kind kind)
{
	return kind == ORDER_GONE || kind == ORDER_SINCE || kind == ORDER_NEWEST;
}

struct order *orders_first(const struct orders *o)
{
	struct list *first = list_first(&o->queue);
	return first ? list_entry(first, struct order, link) : NULL;
}

void orders_done(struct orders *o)
{
	struct order *first = orders_first(o);
	assert(first && o->n > 0);
	list_remove(&first->link);
	o->n--;
	goals_fini(&first->goals);
	buf_fini(&first->bytes);
	free(first);
}
