/* SPDX-License-Identifier: ISC */
#include "spool/large_sync.h"

#include "base/mem.h"
#include "spool/disk.h"
#include "spool/layout.h"
#include "spool/spool_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>

/* More at once would only queue up in the disk. */
enum { THREADS = 8, QUEUE = 1 << 20 };

static struct large_sync *of_job(struct thread_pool_job *job)
{
	return (struct large_sync *)((char *)job - offsetof(struct large_sync, job));
}

static struct large_sync *of_note(struct note *note)
{
	return (struct large_sync *)((char *)note - offsetof(struct large_sync, note));
}

static bool sync_file(const struct spool_store *store)
{
	return !store || !store->file || spool_file_sync(store->file) == 0;
}

static int sync_all(const struct large_sync *l)
{
	int folder = disk_open(l->spool->folder, LAYOUT_LARGE, O_RDONLY | O_DIRECTORY);
	if (folder < 0)
		return errno;
	bool ok = sync_file(l->store) && sync_file(l->store->with) && disk_sync(folder) == 0;
	int error = ok ? 0 : errno;
	disk_close(folder);
	return error;
}

static void run_sync(struct thread_pool_job *job)
{
	struct large_sync *l = of_job(job);
	l->error = sync_all(l);
}

static void post_outcome(struct thread_pool_job *job)
{
	struct large_sync *l = of_job(job);
	loop_post(l->spool->loop, &l->note);
}

void large_sync_init(struct spool *s)
{
	s->syncers = thread_pool_new("sync", THREADS, QUEUE);
}

void large_sync_start(struct spool *s)
{
	thread_pool_start(s->syncers);
}

void large_sync_stop(struct spool *s)
{
	thread_pool_stop(s->syncers);
}

void large_sync_fini(struct spool *s)
{
	thread_pool_free(&s->syncers);
}

void large_sync_give(struct spool *s, struct spool_store *store)
{
	struct large_sync *l = mem_zalloc(sizeof *l);
	l->spool = s;
	l->store = store;
	l->error = ECANCELED; /* until it was worked on */
	l->note.type = SPOOL_NOTE_LARGE_SYNCED;
	l->job.work = run_sync;
	l->job.done = post_outcome;
	s->syncing++;
	assert(loop_is_ours(s->loop));
	if (!thread_pool_give(s->syncers, &l->job))
		post_outcome(&l->job);
}

struct spool_store *large_sync_take(struct spool *s, struct note *note, int *error)
{
	struct large_sync *l = of_note(note);
	struct spool_store *store = l->store;
	assert(l->spool == s && loop_is_ours(s->loop));
	assert(s->syncing > 0);
	s->syncing--;
	*error = l->error;
	free(l);
	return store;
}
