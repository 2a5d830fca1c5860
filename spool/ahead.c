/* SPDX-License-Identifier: ISC */
#include "spool/ahead.h"

#include "base/mem.h"
#include "spool/disk.h"
#include "spool/spool_core.h"

#include <assert.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>

struct ahead {
	struct thread_pool_job job;
	struct note note;
	struct spool *spool;
	struct journal_plan plan;
	struct segment *made; /* NULL: it could not be */
};

static struct ahead *of_job(struct thread_pool_job *job)
{
	return (struct ahead *)((char *)job - offsetof(struct ahead, job));
}

static struct ahead *of_note(struct note *note)
{
	return (struct ahead *)((char *)note - offsetof(struct ahead, note));
}

static void make_segment(struct thread_pool_job *job)
{
	struct ahead *a = of_job(job);
	int folder = disk_open(a->spool->journal.folder, ".", O_RDONLY | O_DIRECTORY);
	if (folder < 0)
		return;
	a->made = journal_make_planned(folder, &a->plan);
	disk_close(folder);
}

static void post_outcome(struct thread_pool_job *job)
{
	struct ahead *a = of_job(job);
	loop_post(a->spool->loop, &a->note);
}

void ahead_run(struct spool *s)
{
	struct journal_plan plan;
	if (!journal_plan_next(&s->journal, s->loop->now_ms, &plan))
		return;
	struct ahead *a = mem_zalloc(sizeof *a);
	a->note.type = SPOOL_NOTE_AHEAD;
	a->spool = s;
	a->plan = plan;
	a->job.work = make_segment;
	a->job.done = post_outcome;
	if (!thread_pool_give(s->syncers, &a->job))
		post_outcome(&a->job);
}

void ahead_take(struct spool *s, struct note *note)
{
	struct ahead *a = of_note(note);
	assert(a->spool == s && loop_is_ours(s->loop));
	journal_planned(&s->journal, &a->plan, a->made);
	free(a);
}

void ahead_drop(struct note *note)
{
	struct ahead *a = of_note(note);
	segment_free(&a->made);
	free(a);
}
