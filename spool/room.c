/* SPDX-License-Identifier: ISC */
#include "spool/room.h"

#include "base/condition.h"
#include "base/log.h"
#include "base/metrics.h"
#include "spool/disk.h"
#include "spool/spool_core.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum { LOOK_MS = 1000 };

void room_measure(struct spool *s)
{
	struct room *r = &s->room;
	bool links = disk_has_links(s->journal.folder);
	r->linked |= links;
	r->gone = r->linked && !links;
	int64_t bytes = disk_free_bytes(s->folder);
	r->free = bytes;
	r->low = bytes >= 0 && bytes < s->conf->queue_minfree;
	if (bytes >= 0)
		journal_room(&s->journal, bytes - s->conf->queue_minfree);
}

void room_look(struct spool *s)
{
	struct room *r = &s->room;
	assert(loop_is_ours(s->loop));
	if (r->looked_ms && s->loop->now_ms - r->looked_ms < LOOK_MS)
		return;
	r->looked_ms = s->loop->now_ms;
	room_measure(s);
}

bool room_for_mail(const struct spool *s)
{
	return !s->room.low && !s->room.gone && !s->room.commits_failed &&
	       !journal_reserve_error(&s->journal);
}

static int error_of_full(const struct spool *s)
{
	int error = journal_reserve_error(&s->journal);
	return disk_means_full(error) ? error : s->room.low ? ENOSPC : 0;
}

static int error_of_failing(const struct spool *s)
{
	int error = journal_reserve_error(&s->journal);
	if (s->room.gone)
		return ENOENT;
	return s->room.commits_failed ? s->room.commits_failed : disk_means_full(error) ? 0 : error;
}

static const char *reason_of_full(const struct spool *s)
{
	if (s->room.low)
		return "less than queue_minfree is free";
	if (disk_free_files(s->folder) == 0)
		return "no inode is free, of which each file takes one";
	return s->room.full ? strerror(s->room.full) : NULL;
}

static void tell_full(struct spool *s, int error)
{
	if (error == s->room.full)
		return;
	bool changed = !error != !s->room.full;
	s->room.full = error;
	condition_turn(CONDITION_disk_full, error, "", reason_of_full(s));
	if (!changed)
		return;
	metrics_add(METRIC_disk_full, error ? 1 : -1);
	log_event(error ? LOG_LEVEL_ERROR : LOG_LEVEL_INFO, error ? "disk_full" : "disk_room",
		  "free", log_number(disk_free_bytes(s->folder)), "queue_minfree",
		  log_number(s->conf->queue_minfree), "reason", error ? reason_of_full(s) : NULL,
		  NULL);
}

static void tell_failing(struct spool *s, int error)
{
	if (error == s->room.failing)
		return;
	if (!error != !s->room.failing)
		metrics_add(METRIC_disk_failing, error ? 1 : -1);
	s->room.failing = error;
	condition_turn(CONDITION_disk_failing, error, "", error ? strerror(error) : NULL);
}

void room_tell(struct spool *s)
{
	tell_failing(s, error_of_failing(s));
	tell_full(s, error_of_full(s));
}
