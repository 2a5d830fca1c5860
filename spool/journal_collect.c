/* SPDX-License-Identifier: ISC */
#include "spool/journal.h"

#include "base/log.h"
#include "spool/checkpoint.h"
#include "spool/disk.h"
#include "spool/removal.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { COLLECT_MS = 100, CHECKPOINT_NEW_MS = 1000, CHECKPOINT_MS = 60000 };

static bool is_removable(const struct journal *j, const struct segment *s)
{
	return s->live == 0 && !s->dirty && !s->busy && !s->unkept && !journal_open_segment(j, s);
}

static bool any_removable(const struct journal *j)
{
	for (const struct list *l = j->segments.next; l != &j->segments; l = l->next)
		if (is_removable(j, list_entry(l, struct segment, link)))
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
	return any_removable(j) && checkpoint_drop(j);
}

/* A segment that becomes needless from now on is for the next checkpoint to name. */
static bool name_those_that_go(struct journal *j)
{
	bool any = false;
	for (struct list *l = j->segments.next; l != &j->segments; l = l->next) {
		struct segment *s = list_entry(l, struct segment, link);
		s->goes = is_removable(j, s);
		any |= s->goes;
	}
	return any;
}

static bool remove_segment(struct journal *j, const struct segment *s)
{
	char name[SEGMENT_NAME];
	assert(s->goes && is_removable(j, s));
	segment_name(s->head.seq, name);
	if (spares_keep(&j->spares, s))
		return true;
	if ((disk_unlink(j->folder, name) == 0 || errno == ENOENT) && disk_sync(j->folder) == 0)
		return true;
	log_event(LOG_LEVEL_ERROR, "collect_failed", "segment", name, "error", strerror(errno),
		  NULL);
	return false;
}

/* The older before the newer that may say that it is dead; what the other lanes hold was replaced by, or replaces,
 * what the main one holds. */
static struct segment *next_to_go(const struct journal *j)
{
	struct segment *first = NULL;
	for (struct list *l = j->segments.next; l != &j->segments; l = l->next) {
		struct segment *s = list_entry(l, struct segment, link);
		if (!s->goes || !is_removable(j, s))
			continue;
		if (s->head.lane != LANE_MAIN)
			return s;
		first = first ? first : s;
	}
	return first;
}

/* False: none is left, or it failed. */
static bool remove_one(struct journal *j)
{
	struct segment *s = next_to_go(j);
	if (!s)
		j->emptied = any_removable(j); /* the current ones say so when they are closed */
	if (!s || !remove_segment(j, s))
		return false;
	replicate_gone(j->keeper, s->head.seq);
	struct content_file *file = content_file_ref(s->file);
	segment_free(&s);
	removal_of_file(j->removers, file);
	return true;
}

void journal_collect(struct journal *j, int64_t now_ms)
{
	if (j->stuck)
		j->removing = false;
	if (j->stuck || !list_empty(&j->older) || j->planned)
		return;
	if (j->removing) {
		j->removing = remove_one(j);
		return;
	}
	int64_t since_ms = now_ms - j->checkpoint_ms;
	bool empty = j->emptied && any_removable(j);
	bool late = (j->changed && since_ms >= CHECKPOINT_NEW_MS) ||
		    (j->written && since_ms >= CHECKPOINT_MS);
	if (since_ms >= COLLECT_MS && (empty || late) && renew_checkpoint(j, now_ms))
		j->removing = name_those_that_go(j);
}
