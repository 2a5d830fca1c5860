/* SPDX-License-Identifier: ISC */
#include "spool/journal.h"

#include "base/log.h"
#include "spool/checkpoint.h"
#include "spool/disk.h"
#include "spool/removal.h"

#include <errno.h>
#include <string.h>

enum { COLLECT_MS = 100, CHECKPOINT_NEW_MS = 1000, CHECKPOINT_MS = 60000 };

static bool removable(const struct journal *j, const struct segment *s)
{
	return s->live == 0 && !s->dirty && !s->busy && !s->unkept && !journal_open_segment(j, s);
}

static bool any_removable(const struct journal *j)
{
	for (const struct list *l = j->segments.next; l != &j->segments; l = l->next)
		if (removable(j, list_entry(l, struct segment, link)))
			return true;
	return false;
}

static bool renew_checkpoint(struct journal *j, int64_t now_ms)
{
	j->checkpoint_ms = now_ms;
	j->changed = j->written = false;
	if (checkpoint_write(j))
		return true;
	log_event(LOG_LEVEL_ERROR, "checkpoint_failed", "error", strerror(errno), NULL);
	return checkpoint_leave(j);
}

static bool remove_segment(struct journal *j, const struct segment *s)
{
	char name[SEGMENT_NAME];
	segment_name(s->head.seq, name);
	if (spares_keep(&j->spares, s))
		return true;
	if ((disk_unlink(j->folder, name) == 0 || errno == ENOENT) && disk_sync(j->folder) == 0)
		return true;
	log_event(LOG_LEVEL_ERROR, "collect_failed", "segment", name, "error", strerror(errno),
		  NULL);
	return false;
}

/* One at a time, the older before the newer that may say that it is dead. */
static bool remove_segments(struct journal *j, bool of_main)
{
	list_each (link, tmp, &j->segments) {
		struct segment *s = list_entry(link, struct segment, link);
		if (!removable(j, s) || (s->head.lane == LANE_MAIN) != of_main)
			continue;
		if (!remove_segment(j, s))
			return false;
		replicate_gone(j->keeper, s->head.seq);
		struct content_file *file = content_file_ref(s->file);
		segment_free(&s);
		removal_of_file(j->removers, file);
	}
	return true;
}

void journal_collect(struct journal *j, int64_t now_ms)
{
	int64_t since_ms = now_ms - j->checkpoint_ms;
	bool empty = j->emptied && any_removable(j);
	bool late = (j->changed && since_ms >= CHECKPOINT_NEW_MS) ||
		    (j->written && since_ms >= CHECKPOINT_MS);
	if (j->stuck || !list_empty(&j->older) || since_ms < COLLECT_MS || (!empty && !late))
		return;
	/* What the other lanes hold was replaced by, or replaces, what the main one holds. */
	if (renew_checkpoint(j, now_ms) && remove_segments(j, false) && remove_segments(j, true))
		j->emptied = false; /* the current ones say so when they are closed */
}
