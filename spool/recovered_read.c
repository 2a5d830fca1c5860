/* SPDX-License-Identifier: ISC */
#include "spool/recovered.h"

#include "base/log.h"
#include "spool/disk.h"
#include "spool/survey.h"

#include <errno.h>
#include <string.h>

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

void recovered_read(struct recovered *r, size_t i)
{
	struct segment *g = r->replay.segment[i];
	struct survey v;
	/* A process that was killed leaves in the kernel what it had not synced. It is read like the
	 * rest, and must be as safe before anything is removed because of it. */
	if (disk_datasync(g->file->fd) != 0)
		recovered_disk_failed(r, g);
	survey_segment(&v, &r->replay, i);
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
