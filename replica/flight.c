/* SPDX-License-Identifier: ISC */
#include "replica/flight.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

static struct flown *flown_of(struct list *link)
{
	return list_entry(link, struct flown, link);
}

void flight_init(struct flight *f)
{
	*f = (struct flight){.n = 0};
	list_init(&f->sent);
}

static void drop_flown(struct flight *f, struct flown *m)
{
	assert(f->n > 0 && f->bytes >= m->bytes);
	f->n--;
	f->bytes -= m->bytes;
	list_remove(&m->link);
	free(m);
}

static void drop_first(struct flight *f)
{
	drop_flown(f, flown_of(list_first(&f->sent)));
}

void flight_drop(struct flight *f)
{
	while (f->n > 0)
		drop_first(f);
	assert(list_empty(&f->sent));
	assert(f->bytes == 0);
}

void flight_add(struct flight *f, const struct flown *m)
{
	assert(list_empty(&f->sent) || flown_of(f->sent.prev)->number < m->number);
	struct flown *copy = mem_alloc(sizeof *copy);
	*copy = *m;
	copy->link = (struct list){NULL, NULL};
	copy->sequence = 0;
	list_append(&f->sent, &copy->link);
	f->n++;
	f->bytes += m->bytes;
}

void flight_acknowledged(struct flight *f, uint64_t number, uint64_t sequence)
{
	for (struct list *l = f->sent.next; l != &f->sent && flown_of(l)->number <= number;
	     l = l->next)
		if (flown_of(l)->number == number)
			flown_of(l)->sequence = sequence;
}

static struct flown *find_flown(const struct flight *f, uint64_t number)
{
	for (struct list *l = f->sent.next; l != &f->sent; l = l->next)
		if (flown_of(l)->number == number)
			return flown_of(l);
	return NULL;
}

bool flight_is_spare(const struct flight *f, uint64_t number)
{
	const struct flown *m = find_flown(f, number);
	return m && m->type == REPLICA_SPARE;
}

void flight_forget(struct flight *f, uint64_t number)
{
	struct flown *m = find_flown(f, number);
	if (m)
		drop_flown(f, m);
}

bool flight_take(struct flight *f, struct flown *m)
{
	struct list *first = list_first(&f->sent);
	if (!first || flown_of(first)->sequence == 0)
		return false;
	*m = *flown_of(first);
	drop_first(f);
	return true;
}

int64_t flight_since_ms(const struct flight *f)
{
	return f->n > 0 ? flown_of(f->sent.next)->sent_ms : INT64_MAX;
}
