/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/work.h"

#include "qmgr/sched/flow.h"
#include "qmgr/sched/job.h"

#include <assert.h>

/* By priority, RFC 6710, and of one priority by age. */
static uint64_t rank_of_work(const struct envelope *envelope, uint64_t order)
{
	enum { AGE_BITS = 58 }; /* five bits are above them, for 19 priorities */
	uint64_t below = (uint64_t)(ENVELOPE_PRIORITY_MAX - envelope->priority);
	return below << AGE_BITS | order;
}

void work_begin(struct work *w, struct scheduler *sched, struct envelope *envelope,
		struct content *content)
{
	assert(envelope->priority >= -ENVELOPE_PRIORITY_MAX);
	assert(envelope->priority <= ENVELOPE_PRIORITY_MAX);
	uint64_t order = ++sched->last_order;
	*w = (struct work){.id = envelope->id,
			   .envelope = envelope,
			   .content = content,
			   .order = order,
			   .rank = rank_of_work(envelope, order),
			   .flow = flow_join(sched, envelope_flow(envelope)),
			   .taken_steady_ms = scheduler_now_ms(sched)};
	list_init(&w->jobs);
	list_append(&sched->active, &w->in_active);
	sched->nactive++;
}

void work_end(struct work *w, struct scheduler *sched)
{
	assert(w->rcpt_count == 0 && sched->nactive > 0);
	jobs_free(w);
	list_remove(&w->in_active);
	sched->nactive--;
	flow_part(w->flow);
}
