/* SPDX-License-Identifier: ISC */
#include "spool/recovered.h"

#include "base/log.h"
#include "base/mem.h"
#include "spool/disk.h"
#include "spool/survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 64 << 10, TRIES = 3, AGAIN_MS = 100 };

static void report_torn(const struct segment *g, const struct region *w)
{
	char name[SEGMENT_NAME];
	log_event(LOG_LEVEL_INFO, "torn", "segment", segment_name(g->head.seq, name), "offset",
		  log_number((int64_t)w->from), "bytes", log_number((int64_t)(w->to - w->from)),
		  NULL);
}

/* Each is reported once, and is a right record that says nothing from then on. */
static void report_regions(struct recovered *r, struct segment *g, const struct survey *v)
{
	for (size_t i = 0; i < v->n; i++) {
		const struct region *w = &v->region[i];
		bool kept = true;
		if (w->damage) {
			kept = quarantine_bytes(r->spool, g, w->from, w->to, w->id);
			r->damaged++;
		} else {
			report_torn(g, w);
		}
		g->unkept |= !kept;
		if (w->followed && kept && !v->unreadable)
			segment_fill(g, w->from, w->to);
	}
}

static void report_short(struct recovered *r, const struct segment *g)
{
	char name[SEGMENT_NAME];
	r->damaged++;
	log_event(LOG_LEVEL_ERROR, "damage", "segment", segment_name(g->head.seq, name), "offset",
		  log_number((int64_t)g->size), "reason", "the segment was cut short", "bytes",
		  log_number((int64_t)(g->head.size - g->size)), NULL);
}

void recovered_disk_failed(struct recovered *r, const struct segment *g)
{
	char name[SEGMENT_NAME];
	r->unsafe = true;
	log_event(LOG_LEVEL_ERROR, "recover_failed", "segment", segment_name(g->head.seq, name),
		  "error", strerror(errno), NULL);
}

/* A disk that is out of reach for a moment, or too many open files, must not cost a message its start. So often in all: it
 * may be for good. */
bool recovered_tries_again(struct recovered *r)
{
	int error = errno;
	if (r->tries >= TRIES || atomic_load(&r->spool->interrupt))
		return false;
	r->tries++;
	usleep(AGAIN_MS * 1000);
	errno = error;
	return true;
}

/* A process that was killed leaves in the kernel what it had not synced. It is read like the rest, and
 * must be as safe before anything is removed because of it. When a sync had failed, the kernel may take it
 * for written all the same, and the next sync succeeds: so it is written once more before. What is read after that has failed
 * may be what was there earlier, and says nothing of what was lost: unread is all that may be tried again. */
static bool make_stable(const struct segment *g, uint64_t end, bool *unread)
{
	char *piece = mem_alloc(PIECE);
	bool good = true;
	*unread = false;
	for (uint64_t at = g->said; good && at < end; at += PIECE) {
		struct iovec v = {.iov_base = piece,
				  .iov_len = end - at < PIECE ? (size_t)(end - at) : PIECE};
		ssize_t n = disk_read(g->file->fd, piece, v.iov_len, at);
		*unread = n != (ssize_t)v.iov_len;
		good = !*unread && disk_write(g->file->fd, &v, 1, at) == 0;
	}
	free(piece);
	return good && disk_datasync(g->file->fd) == 0;
}

void recovered_read(struct recovered *r, size_t i)
{
	struct segment *g = r->replay.segment[i];
	struct survey v;
	survey_segment(&v, &r->replay, i);
	bool stable, unread;
	while (!(stable = make_stable(g, v.end, &unread)) && unread && recovered_tries_again(r))
		;
	if (!stable)
		recovered_disk_failed(r, g);
	if (v.cut_short)
		report_short(r, g);
	report_regions(r, g, &v);
	g->end = g->synced = v.end;
	g->to_seal = !v.sealed && !v.unreadable && !g->unkept;
	errno = EIO;
	if (v.unreadable)
		recovered_disk_failed(r, g);
	survey_fini(&v);
	r->read++;
}
