/* SPDX-License-Identifier: ISC */
#include "replica/copy_orders.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

static struct order *order_of(struct list *link)
{
	return list_entry(link, struct order, link);
}

void orders_init(struct orders *o)
{
	*o = (struct orders){.n = 0};
	list_init(&o->queue);
}

static void drop_order(struct orders *o, struct order *one)
{
	assert(o->n > 0);
	assert(!one->under_way || o->queue.next == &one->link); /* an answer is for the first */
	list_remove(&one->link);
	o->n--;
	buf_fini(&one->bytes);
	free(one);
}

void orders_fini(struct orders *o)
{
	while (o->n > 0)
		drop_order(o, orders_first(o));
	assert(list_empty(&o->queue));
	goals_fini(&o->goals);
}

/* Before this one belongs what is of that kind. */
static struct list *place_of(struct orders *o, enum order_kind kind)
{
	struct list *l = o->queue.next;
	while (l != &o->queue && (order_of(l)->under_way || order_of(l)->kind <= kind))
		l = l->next;
	return l;
}

/* A later one says all that it says; behind a purge that has failed it would come after that one. */
static void drop_waiting_checkpoint(struct orders *o)
{
	list_each (link, tmp, &o->queue) {
		struct order *one = order_of(link);
		if (one->kind == ORDER_CHECKPOINT && !one->under_way)
			drop_order(o, one);
	}
}

struct order *orders_add(struct orders *o, enum order_kind kind, struct copy_key key)
{
	if (kind == ORDER_CHECKPOINT)
		drop_waiting_checkpoint(o);
	struct list *place = place_of(o, kind);
	if (place != &o->queue || kind != ORDER_GONE)
		o->covered = 0;
	struct order *new = mem_zalloc(sizeof *new);
	new->kind = kind;
	new->key = key;
	list_insert_before(place, &new->link);
	o->n++;
	assert(o->covered < o->n);
	return new;
}

struct order *orders_gone(const struct orders *o, struct copy_key key)
{
	for (struct list *l = o->queue.prev; l != &o->queue && order_of(l)->kind == ORDER_GONE;
	     l = l->prev)
		if (order_of(l)->key.of == key.of && order_of(l)->key.large == key.large)
			return order_of(l);
	return NULL;
}

void orders_forget_gone(struct orders *o, struct order *gone)
{
	assert(gone->kind == ORDER_GONE && !gone->under_way);
	o->covered = 0;
	drop_order(o, gone);
}

void orders_forget_marks(struct orders *o, struct copy_key key)
{
	list_each (link, tmp, &o->queue) {
		struct order *one = order_of(link);
		if (one->kind != ORDER_MARKS || one->under_way || one->key.of != key.of)
			continue;
		o->covered = 0;
		drop_order(o, one);
	}
}

void orders_forget_numbers(struct orders *o)
{
	list_each (link, tmp, &o->queue) {
		struct order *one = order_of(link);
		if (one->kind != ORDER_SINCE && one->kind != ORDER_NEWEST)
			continue;
		assert(!one->under_way);
		o->covered = 0;
		drop_order(o, one);
	}
}

struct order *orders_first(const struct orders *o)
{
	struct list *first = list_first(&o->queue);
	return first ? order_of(first) : NULL;
}

bool orders_may(struct orders *o, struct copies *copies)
{
	assert(o->n > 0);
	if (orders_first(o)->kind == ORDER_ROOM)
		return true;
	if (o->covered == 0) {
		goals_fini(&o->goals);
		goals_set(&o->goals, copies, COPY_CLASSES);
		o->covered = o->n;
	}
	return goals_reached(&o->goals, copies);
}

static bool is_replaced(const struct orders *o, const struct order *checkpoint)
{
	for (struct list *l = checkpoint->link.next; l != &o->queue; l = l->next)
		if (order_of(l)->kind == ORDER_CHECKPOINT)
			return true;
	return false;
}

void orders_again(struct orders *o)
{
	struct order *first = orders_first(o);
	if (!first || order_is_purge(first->kind))
		return;
	first->under_way = false;
	if (first->kind == ORDER_CHECKPOINT && is_replaced(o, first))
		orders_done(o);
}

void orders_done(struct orders *o)
{
	assert(o->covered <= o->n);
	drop_order(o, orders_first(o));
	o->covered -= o->covered > 0;
}

/* Those that go wait behind all others. */
bool orders_any_gone(const struct orders *o)
{
	return o->n > 0 && order_of(o->queue.prev)->kind == ORDER_GONE;
}

void orders_each_gone(const struct orders *o, void (*take)(void *owner, struct copy_key),
		      void *owner)
{
	for (struct list *l = o->queue.prev; l != &o->queue && order_of(l)->kind == ORDER_GONE;
	     l = l->prev)
		take(owner, order_of(l)->key);
}

bool order_is_purge(enum order_kind kind)
{
	return kind == ORDER_ROOM || kind == ORDER_GONE || kind == ORDER_SINCE ||
	       kind == ORDER_NEWEST;
}
