/* SPDX-License-Identifier: ISC */
#include "spool/lane.h"

#include "base/crc32c.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "spool/disk.h"
#include "spool/payload.h"

#include <assert.h>
#include <stdlib.h>

/* A piece of one write: memory of others, or (NULL) a part of the scratch buffer, which may
 * still move. */
struct piece {
	const void *base;
	size_t at, len;
};

void lane_init(struct lane *l, uint32_t number, uint64_t segment_size)
{
	*l = (struct lane){.number = number, .segment_size = segment_size};
	buf_init(&l->scratch);
}

void lane_fini(struct lane *l)
{
	buf_fini(&l->scratch);
	free(l->piece);
}

uint32_t lane_of_delay(int64_t delay_ms, int64_t minimal_backoff_ms)
{
	uint32_t lane = LANE_DEFERRED;
	/* Half a step above each interval, so that its jitter stays in one lane. */
	int64_t limit_ms = minimal_backoff_ms + minimal_backoff_ms / 2;
	while (delay_ms > limit_ms && lane < LANE_HOLD - 1) {
		limit_ms *= 2;
		lane++;
	}
	return lane;
}

bool lane_has_room(const struct lane *l, uint64_t bytes)
{
	const struct segment *s = l->current;
	const uint64_t ours = record_size(PAYLOAD_SYNCED) + RECORD_HEAD;
	if (!s)
		return false;
	uint64_t end = s->end + l->added;
	return end == SEGMENT_BEGIN || end + bytes + ours <= s->size;
}

static void add_piece(struct lane *l, const void *base, size_t len)
{
	struct piece *last = l->npiece ? &l->piece[l->npiece - 1] : NULL;
	if (!base && last && !last->base) {
		last->len += len; /* the scratch buffer has no gaps */
		return;
	}
	if (l->npiece == l->piece_cap) {
		l->piece_cap = l->piece_cap ? l->piece_cap * 2 : 64;
		l->piece = mem_realloc(l->piece, l->piece_cap * sizeof *l->piece);
	}
	assert(base || buf_len(&l->scratch) >= len);
	l->piece[l->npiece++] = (struct piece){
		.base = base, .at = buf_len(&l->scratch) - (base ? 0 : len), .len = len};
}

static void append_record(struct lane *l, const struct record *what, const void *payload,
			  bool borrow)
{
	uint64_t size = record_size(what->length);
	struct record r = *what;
	r.crc = crc32c(0, payload, what->length);
	record_put((uint8_t *)buf_reserve(&l->scratch, RECORD_HEAD), l->current->seed, &r);
	buf_commit(&l->scratch, RECORD_HEAD);
	add_piece(l, NULL, RECORD_HEAD);
	if (borrow && what->length > 0) {
		add_piece(l, payload, what->length);
	} else {
		buf_append(&l->scratch, payload, what->length);
		add_piece(l, NULL, what->length);
	}
	size_t pad = (size_t)(size - RECORD_HEAD - what->length);
	assert(pad < 8);
	buf_append(&l->scratch, "\0\0\0\0\0\0\0", pad);
	add_piece(l, NULL, pad);
	l->added += size;
}

bool lane_add_synced(struct lane *l)
{
	struct segment *s = l->current;
	uint8_t payload[PAYLOAD_SYNCED];
	if (!s || s->synced <= s->said || s->synced == SEGMENT_BEGIN)
		return false;
	assert(s->synced <= s->end); /* a start trusts all that lies before it */
	payload_set_synced(payload, s->synced);
	append_record(l, &(struct record){.type = RECORD_SYNCED, .length = sizeof payload}, payload,
		      false);
	s->said = s->synced;
	return true;
}

void lane_add_end(struct lane *l)
{
	append_record(l, &(struct record){.type = RECORD_END}, "", false);
}

void lane_add(struct lane *l, const struct record *what, const void *payload, bool borrow,
	      struct place *place)
{
	assert(what->length <= RECORD_PAYLOAD_MAX);
	assert(lane_has_room(l, record_size(what->length)));
	if (l->npiece == 0)
		lane_add_synced(l);
	assert(l->current->end + l->added <= UINT32_MAX);
	*place = (struct place){.segment = l->current,
				.offset = (uint32_t)(l->current->end + l->added),
				.size = (uint32_t)record_size(what->length)};
	append_record(l, what, payload, borrow);
}

bool lane_write(struct lane *l)
{
	if (l->npiece == 0)
		return true;
	struct segment *s = l->current;
	struct iovec *v = mem_alloc(l->npiece * sizeof *v);
	for (size_t i = 0; i < l->npiece; i++) {
		const struct piece *p = &l->piece[i];
		const void *base = p->base ? p->base : buf_data(&l->scratch) + p->at;
		v[i] = (struct iovec){.iov_base = (void *)base, .iov_len = p->len};
	}
	s->dirty = true;
	bool ok = disk_write(s->file->fd, v, l->npiece, s->end) == 0;
	free(v);
	if (!ok)
		return false;
	s->end += l->added;
	if (s->size < s->end)
		s->size = s->end;
	metrics_add(METRIC_committed_bytes, (int64_t)l->added);
	lane_drop(l);
	return true;
}

void lane_drop(struct lane *l)
{
	l->added = 0;
	l->npiece = 0;
	buf_clear(&l->scratch);
}
