/* SPDX-License-Identifier: ISC */
#include "spool/removal.h"

#include "base/ident.h"
#include "base/mem.h"
#include "spool/disk.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

struct removal {
	struct thread_pool_job job;
	struct content_file *file; /* or NULL */
	int folder;
	uint64_t id; /* whose name goes; or 0 */
	bool unlinked;
};

static struct removal *of_job(struct thread_pool_job *job)
{
	return (struct removal *)((char *)job - offsetof(struct removal, job));
}

static void unlink_file(struct thread_pool_job *job)
{
	struct removal *r = of_job(job);
	char name[IDENT_TEXT];
	if (r->id)
		disk_unlink(r->folder, ident_text(r->id, name));
	r->unlinked = true;
}

static void finish_removal(struct thread_pool_job *job)
{
	struct removal *r = of_job(job);
	if (!r->unlinked)
		unlink_file(job);
	content_file_unref(r->file);
	free(r);
}

static void give_removal(struct thread_pool *pool, const struct removal *what)
{
	assert(what->file || what->id);
	struct removal *r = mem_zalloc(sizeof *r);
	*r = *what;
	r->job.work = unlink_file;
	r->job.done = finish_removal;
	if (pool && thread_pool_give(pool, &r->job))
		return;
	unlink_file(&r->job);
	finish_removal(&r->job);
}

void removal_of_file(struct thread_pool *pool, struct content_file *file)
{
	give_removal(pool, &(struct removal){.file = file});
}

void removal_of_large(struct thread_pool *pool, int folder, uint64_t id, struct content_file *file)
{
	give_removal(pool, &(struct removal){.file = file, .folder = folder, .id = id});
}
