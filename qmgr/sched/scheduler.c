/* SPDX-License-Identifier: ISC */
#include "qmgr/sched/scheduler.h"

#include "qmgr/sched/flow.h"
#include "qmgr/sched/job.h"
#include "qmgr/sched/transport.h"

#include <assert.h>
#include <sys/random.h>

void scheduler_init(struct scheduler *sched, struct conf *conf, struct loop *loop,
		    void (*refill)(struct job *), void (*settle)(struct scheduler *))
{
	*sched = (struct scheduler){.conf = conf, .loop = loop, .refill = refill, .settle = settle};
	list_init(&sched->active);
	list_init(&sched->dirty);
	few_init(&sched->jobs, sizeof(struct job));
	few_init(&sched->peers, sizeof(struct peer));
	few_init(&sched->entries, sizeof(struct entry));
	while (sched->chance == 0 && getrandom(&sched->chance, sizeof sched->chance, 0) >= 0)
		;
}

void scheduler_fini(struct scheduler *sched)
{
	assert(list_empty(&sched->active) && sched->nactive == 0 && sched->rcpt_count == 0);
	assert(sched->waiting == 0 && sched->under_way == 0 && list_empty(&sched->dirty));
	flows_free(sched);
	transports_free(sched);
	few_fini(&sched->jobs);
	few_fini(&sched->peers);
	few_fini(&sched->entries);
}

double scheduler_chance(struct scheduler *sched)
{
	/* xorshift64*: not for secrets, only to keep equals apart. */
	sched->chance ^= sched->chance >> 12;
	sched->chance ^= sched->chance << 25;
	sched->chance ^= sched->chance >> 27;
	return (double)((sched->chance * UINT64_C(2685821657736338717)) >> 11) / 9007199254740992.0;
}

void scheduler_touch(struct queue *queue)
{
	if (list_empty(&queue->in_dirty))
		list_append(&queue->transport->scheduler->dirty, &queue->in_dirty);
}
