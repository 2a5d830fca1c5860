/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/preempt.h"

#include <assert.h>

/* A second, so that the size alone decides among messages that have just come. POSTFIX counts
 * whole seconds, from 1. */
enum { AGE_LEAST_MS = 1000 };

void stack_init(struct stack *s)
{
	*s = (struct stack){0};
	list_init(&s->children);
	list_init(&s->sibling);
}

void preempt_count(struct stack *s)
{
	s->available++;
	s->used++;
}

void preempt_uncount(struct stack *s)
{
	s->available--;
	s->used--;
}

bool preempt_possible(const struct stack *current, int64_t entries, const struct conf_transport *t)
{
	/* With a cost of 1 every slot would be given away, and the current job would never end. */
	return t->delivery_slot_cost >= 2 && current->available > 0 &&
	       entries >= t->minimum_delivery_slots * t->delivery_slot_cost;
}

int64_t preempt_payable(const struct stack *current, int64_t left, const struct conf_transport *t)
{
	return (left + current->available) / t->delivery_slot_cost;
}

double preempt_score(int64_t age_ms, int64_t entries)
{
	return (double)(age_ms + AGE_LEAST_MS) / (double)entries;
}

bool preempt_affordable(const struct stack *current, int64_t needed, const struct conf_transport *t)
{
	int64_t saved = current->available / t->delivery_slot_cost + t->delivery_slot_loan;
	return saved * 100 >= needed * (100 - t->delivery_slot_discount);
}

void preempt_push(struct stack *current, struct stack *child, int64_t needed,
		  const struct conf_transport *t)
{
	assert(needed > 0);
	assert(child != current && child->level == 0 && stack_leaf(child));
	child->parent = current;
	child->level = current->level + 1;
	list_append(&current->children, &child->sibling);
	current->available -= needed * t->delivery_slot_cost;
	child->used = -needed;
}

/* Children of a job that leaves the stack: without anybody to adopt them they stay where they are,
 * and owe nobody. */
static void adopt_children(struct stack *from, struct stack *parent)
{
	list_each (link, tmp, &from->children) {
		struct stack *child = list_entry(link, struct stack, sibling);
		list_remove(link);
		child->parent = parent;
		if (parent)
			list_append(&parent->children, link);
	}
}

void preempt_pop(struct stack *s, const struct conf_transport *t)
{
	struct stack *parent = s->parent;
	/* Only who has paid gets back: a parent by adoption would gain slots that another saved. */
	if (parent && s->level == parent->level + 1)
		parent->available -= s->used * t->delivery_slot_cost;
	list_remove(&s->sibling);
	adopt_children(s, parent);
	s->parent = NULL;
	s->level = 0;
}
