/* SPDX-License-Identifier: ISC */
#include "spool/older_copy.h"

#include "base/mem.h"
#include "spool/scan.h"

#include <stdlib.h>

static void add_record(struct older_copies *o, const struct segment *g, const struct scan *scan)
{
	const struct record *r = &scan->record;
	if (r->type != RECORD_CONTENT)
		return;
	if (o->n == o->cap) {
		o->cap = o->cap ? 2 * o->cap : 64;
		o->copy = mem_realloc(o->copy, o->cap * sizeof *o->copy);
	}
	o->copy[o->n++] = (struct older_copy){.id = r->id,
					      .segment = g,
					      .offset = scan->from + RECORD_HEAD,
					      .size = r->length,
					      .crc = r->crc};
}

static void read_segment(struct older_copies *o, const struct segment *g)
{
	struct scan scan;
	enum scan_result result;
	scan_init(&scan, g->file->fd, g->seed, g->size);
	while ((result = scan_next(&scan)) == SCAN_RECORD || result == SCAN_DAMAGE)
		if (result == SCAN_RECORD)
			add_record(o, g, &scan);
	scan_fini(&scan);
}

static int compare_by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct older_copy *)a)->id, y = ((const struct older_copy *)b)->id;
	return (x > y) - (x < y);
}

static void read_all(struct older_copies *o, struct segment *const *segment, size_t n)
{
	for (size_t i = 0; i < n; i++)
		read_segment(o, segment[i]);
	if (o->n > 0)
		qsort(o->copy, o->n, sizeof *o->copy, compare_by_id);
	o->read = true;
}

struct content *older_copy(struct older_copies *o, struct segment *const *segment, size_t n,
			   uint64_t id, uint64_t size)
{
	const struct older_copy key = {.id = id};
	if (!o->read)
		read_all(o, segment, n);
	const struct older_copy *found =
		o->n > 0 ? bsearch(&key, o->copy, o->n, sizeof key, compare_by_id) : NULL;
	if (!found || found->size != size)
		return NULL;
	struct content *c = content_in_file(found->segment->file, found->offset, size);
	c->summed = true;
	c->sum = found->crc;
	return c;
}

void older_copies_fini(struct older_copies *o)
{
	free(o->copy);
	*o = (struct older_copies){.n = 0};
}
