/* preempt.h - how mail with few recipients slips past mail with many: slots, and who pays for them.
 *
 * Of every delivery_slot_cost entries of a job one delivery slot may be given away. A job that needs
 * no more slots than the current job has saved moves in front of it: its stack child. The price is
 * taken at once for all the entries that the child may still have, and what it did not use is given
 * back when it leaves the stack.
 *
 *	slots of job 1, in units of 1/cost:   1 1 1 1 [- 2*cost] 2 2 1 1 ...
 *
 *	parent --- children (siblings of each other; a child may be a parent itself)
 *	A parent that ends leaves its children to its own parent, who adopts them. An adopted child
 *	gives nothing back: its price was paid by who is gone.
 *
 * Numbers in, numbers out.
 *
 * OWNERSHIP  Embedded in struct job.
 * THREAD     qmgr.
 * STATES     level 0: not in front of anybody; above it: the child of a job one level below, or an
 *            adopted one.
 * ERRORS     None; misuse asserts.
 * SEE        POSTFIX SCHEDULER_README, "How the preemption works", "How destination concurrency
 *            limits affect the scheduling algorithm"; POSTFIX qmgr_job.c.
 */
#ifndef QMGR_SCHED_PREEMPT_H
#define QMGR_SCHED_PREEMPT_H

#include "base/conf.h"
#include "base/list.h"

struct stack {
	struct stack *parent; /* NULL: none, or gone without anybody to adopt it */
	struct list children; /* struct stack, by sibling */
	struct list sibling;
	int level;
	int64_t available; /* slots saved, times delivery_slot_cost; below 0: on loan */
	int64_t used;	   /* in front of the parent: slots used less those paid for */
};

void stack_init(struct stack *);

static inline bool stack_leaf(const struct stack *s)
{
	return list_empty(&s->children);
}

void preempt_count(struct stack *);   /* one of its entries was selected */
void preempt_uncount(struct stack *); /* that entry came back as if it had never been */

bool preempt_possible(const struct stack *current, int64_t entries, const struct conf_transport *);
/* Is the current job, of so many entries, worth slipping past, and has it saved anything? */

int64_t preempt_payable(const struct stack *current, int64_t left, const struct conf_transport *);
/* So many slots the current job will have saved at most, when the last of the `left` entries that it
 * surely has is selected. */

double preempt_score(int64_t age_ms, int64_t entries);
/* Of candidates the one with the highest comes first: age over entries. */

bool preempt_affordable(const struct stack *current, int64_t needed, const struct conf_transport *);
/* Has the current job saved enough, discount and loan counted in, for so many entries? */

void preempt_push(struct stack *current, struct stack *child, int64_t needed,
		  const struct conf_transport *);
/* The child, a leaf at level 0, slips past the current job, which pays. */

void preempt_pop(struct stack *, const struct conf_transport *);
/* Back to level 0: what was not used is given back, its children are adopted. Harmless at level 0. */

#endif
