/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/work.h"

#include "qmgr/sched/flow.h"
#include "qmgr/sched/job.h"

#include <assert.h>

void work_begin(struct work *w, struct scheduler *sched, struct envelope *envelope,
		struct content *content)
{
	*w = (struct work){.id = envelope->id,
			   .envelope = envelope,
			   .content = content,
			   .order = ++sched->last_order,
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
